import pytest
from django.utils import timezone

from agents.models import Turn
from agents.om.turns import check_turns, stored_turns
from agents.services.fork import fork
from agents.services.send import send
from memory.models import Message
from memory.services.change import Refused
from tests.memory.services.editing import beekeeping, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


@pytest.fixture
def turns(world, ada):
    """Five turns of two messages, the last one running, and a prompt that waits."""
    for number, first in enumerate(range(1, 11, 2), 1):
        done = first < 9
        Turn.objects.create(
            thread=world.thread,
            number=number,
            author=ada,
            prompt=world.message(first).text,
            status="done" if done else "running",
            lease_token=None if done else world.record.pk,
            lease_expires_at=None if done else timezone.now() + timezone.timedelta(hours=1),
            usage={"requests": 1},
            first_position=first,
            last_position=first + 1 if done else None,
            started_at=timezone.now(),
            finished_at=timezone.now() if done else None,
        )
    send(world.thread.pk, "And then?")
    return Turn.objects.filter(thread=world.thread)


def test_a_forked_page_shows_the_turns_up_to_its_position(world, turns, ada):
    child = fork(world.thread.pk, 4, author=ada)

    copies = Turn.objects.filter(thread=child).order_by("number")
    assert [(t.number, t.status, t.first_position, t.last_position) for t in copies] == [
        (1, "done", 1, 2),
        (2, "done", 3, 4),
    ]
    assert [t.prompt for t in copies] == [
        m.text for m in Message.objects.filter(thread=child, kind="request").order_by("position")
    ]
    assert {t.usage == {} for t in copies} == {True}
    assert not {t.key for t in copies} & {t.key for t in turns}
    assert list(check_turns(stored_turns())) == []
    assert wrong() == []


def test_a_turn_that_runs_on_elsewhere_counts_as_stopped(world, turns):
    child = fork(world.thread.pk, 10)

    last = Turn.objects.filter(thread=child).latest("number")
    assert (last.status, last.last_position, last.lease_token) == ("stopped", 10, None)
    assert last.finished_at is not None
    assert Turn.objects.get(pk=turns.get(number=5).pk).status == "running"
    assert list(check_turns(stored_turns())) == []


def test_a_fork_can_be_talked_to(world, turns):
    child = fork(world.thread.pk, 4)

    assert send(child.pk, "Something else").number == 3


def test_where_no_step_ends_no_turn_is_copied(world, turns):
    with pytest.raises(Refused):
        fork(world.thread.pk, 3)
    assert set(Turn.objects.values_list("thread", flat=True)) == {world.thread.pk}
