import pytest
from asgiref.sync import sync_to_async

from memory.dispatch import OPERATIONS, asked
from memory.models import Cycle, Line, MemoryRecord, Thread
from memory.services.asked import ask_for, carry_out
from memory.services.change import Refused
from memory.services.operate import NOTHING_LOOSE, NOTHING_RAW
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

talk = sync_to_async(play.talk)
buffer_all = sync_to_async(play.buffer_all)


class Woken(list):
    """Note who is woken, as a dispatcher."""

    def wake(self, thread_id):
        self.append(thread_id)


@pytest.fixture
def woken():
    """Take the wake-ups of every operation by its name."""
    heard = {name: Woken() for name in OPERATIONS}
    before = {name: asked[name].use(heard[name]) for name in OPERATIONS}
    yield heard
    for name in OPERATIONS:
        asked[name].use(before[name])


def test_what_is_asked_for_wakes_its_own_runner_alone(thread, woken):
    play.talk(thread, 1)
    ask_for("observe", thread.pk)
    assert woken == {"observe": [thread.pk], "buffer": [], "activate": [], "reflect": []}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ("observe", NOTHING_RAW),
        ("buffer", NOTHING_RAW),
        ("activate", "There is nothing to activate: nothing is buffered."),
        ("reflect", NOTHING_LOOSE),
    ],
)
def test_where_there_is_nothing_to_do_nobody_is_woken_and_it_is_said_why(
    thread, woken, operation, why
):
    with pytest.raises(Refused, match=why.split(":")[0]):
        ask_for(operation, thread.pk)
    assert not any(woken.values())


def test_a_conversation_that_is_never_remembered_takes_no_operation(thread, woken):
    Thread.objects.update(remembers=False)
    with pytest.raises(Refused, match="does not remember"):
        ask_for("observe", thread.pk)


async def test_observing_shows_all_that_was_said(thread, models):
    await talk(thread, 2)
    outcome = await carry_out("observe", thread.pk, resolve=models)
    assert (outcome.well, outcome.after.raw) == (True, 0)
    assert await Line.objects.filter(until=None).acount() > 0


async def test_buffering_shows_nothing_and_activating_shows_what_was_buffered(thread, models):
    await talk(thread, 2)
    await carry_out("buffer", thread.pk, resolve=models)
    assert (await MemoryRecord.objects.aget()).revision == 0
    await carry_out("activate", thread.pk, resolve=models)
    assert (await MemoryRecord.objects.aget()).revision == 1


async def test_reflecting_takes_the_place_of_all_lines(thread, models):
    await talk(thread, 2)
    await carry_out("observe", thread.pk, resolve=models)
    await carry_out("reflect", thread.pk, resolve=models)
    assert await Cycle.objects.filter(kind="reflect", status="done").acount() == 1
    assert await Line.objects.filter(until=None).acount() == 1


async def test_what_was_deleted_before_its_turn_came_is_left_alone(thread, models):
    await thread.adelete()
    assert await carry_out("observe", thread.pk, resolve=models) is None
    assert not models.requests
