import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents.models import Turn
from agents.services.replay import ReplayRefused, Source, adopt, begin, replay, replays
from agents.services.send import send
from agents.services.thread import start
from memory.messages import load
from memory.models import Cycle, MemoryRecord, Message, Observation, Thread
from memory.recordings import Recorded, Recording
from memory.verify import verify

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2025, 6, 1, 8, 0, tzinfo=UTC)
LONG = " I keep bees on the roof, and the hive on the left has a new queen since spring." * 3
SOURCE = Source("bees", "0" * 64)


class Killed(Exception):
    """Stands for the end of the process."""


def recording(*messages):
    """Return a recording of messages a minute apart."""
    return Recording(
        "bees",
        "Bees",
        "UTC",
        tuple(
            Recorded(START + timedelta(minutes=minute), message, str(minute))
            for minute, message in enumerate(messages)
        ),
    )


def user(text):
    return ModelRequest([UserPromptPart(text, timestamp=START)], timestamp=START)


def answer(text):
    return ModelResponse([TextPart(text)], timestamp=START)


def call(call_id):
    return ModelResponse([ToolCallPart("clock", {}, call_id)], timestamp=START)


def result(call_id):
    part = ToolReturnPart("clock", "9 o'clock", call_id, timestamp=START)
    return ModelRequest([part], timestamp=START)


def long_recording(turns=16):
    messages = []
    for n in range(turns):
        messages += [user(f"{n}:{LONG}")]
        if n % 5 == 3:
            messages += [call(f"c{n}"), result(f"c{n}")]
        messages += [answer(f"Answer {n}.{LONG}")]
    return recording(*messages)


@pytest.fixture
def replayed(resource, profile):
    """Return an empty thread that replays the recording."""
    return begin(SOURCE, resource=resource, profile=profile, title="Bees")


async def stored(thread):
    return [m async for m in Message.objects.filter(thread=thread).order_by("position")]


async def is_whole(thread, played):
    """Tell whether every message is stored once, in order, at its time."""
    rows = await stored(thread)
    assert [load(row.payload) for row in rows] == [r.message for r in played.messages]
    assert [row.created_at for row in rows] == [r.at for r in played.messages]
    report = await sync_to_async(verify)()
    assert report.violations == ()
    return True


async def test_every_message_is_stored_once_in_order_and_becomes_memory(replayed, models):
    played = long_recording()

    progress = await replay(replayed.pk, played, resolve=models)

    assert await is_whole(replayed, played)
    assert progress.finished
    assert progress.stored == progress.total == len(played.messages)
    assert progress.cycles == await Cycle.objects.acount() > 0
    assert await Observation.objects.filter(kind="reflection", since__isnull=False).aexists()
    assert models.asked("actor") == []


async def test_a_prompt_with_its_answers_is_one_turn(replayed, models):
    messages = [user("Time?"), call("c1"), result("c1"), answer("Nine."), user("Thanks.")]
    await replay(replayed.pk, recording(*messages), resolve=models)

    turns = [t async for t in Turn.objects.order_by("number")]
    assert [(t.prompt, t.first_position, t.last_position) for t in turns] == [
        ("Time?", 1, 4),
        ("Thanks.", 5, 5),
    ]
    assert {t.status for t in turns} == {Turn.Status.DONE}


async def test_a_recording_may_begin_with_an_answer(replayed, models):
    played = recording(answer("How can I help?"), user("Time?"), answer("Nine."))

    await replay(replayed.pk, played, resolve=models)

    assert await is_whole(replayed, played)


async def test_arguments_keep_the_order_they_were_said_in(replayed, models):
    said = {"within": "2 days", "query": "bees", "a": {"zz": 1, "y": 2}}
    made = ModelResponse([ToolCallPart("search", said, "c1")], timestamp=START)
    returned = ToolReturnPart("search", {"found": 3, "by": "Ada"}, "c1", timestamp=START)
    played = recording(user("Find bees"), made, ModelRequest([returned], timestamp=START))

    await replay(replayed.pk, played, resolve=models)

    stored_call = load((await stored(replayed))[1].payload).parts[0]
    assert list(stored_call.args) == list(said)
    assert await is_whole(replayed, played)


async def test_a_finished_replay_does_nothing_when_run_again(replayed, models):
    played = recording(user("Hello"), answer("Hi"))
    await replay(replayed.pk, played, resolve=models)
    said = []

    progress = await replay(replayed.pk, played, resolve=models, report=said.append)

    assert progress.finished
    assert said == []
    assert await Turn.objects.acount() == 1


@pytest.mark.parametrize("stop_at", [1, 2, 3, 6, 7, 9, 10])
async def test_a_killed_replay_goes_on_where_it_stopped(replayed, models, stop_at):
    """Dies as a process does: without closing its turn. Its lease then lapses."""
    played = long_recording(turns=4)

    def die(progress):
        if progress.stored == stop_at and not progress.waiting_for:
            raise Killed

    with pytest.raises(Killed):
        await replay(replayed.pk, played, resolve=models, report=die)
    await Turn.objects.running().aupdate(lease_expires_at=Now() - timedelta(seconds=1))
    await replay(replayed.pk, played, resolve=models)

    assert await is_whole(replayed, played)


async def test_a_lapsed_turn_of_a_dead_replay_is_closed_as_interrupted(replayed, models):
    played = long_recording(turns=2)

    def die(progress):
        if progress.stored == 1:
            raise Killed

    with pytest.raises(Killed):
        await replay(replayed.pk, played, resolve=models, report=die)
    await Turn.objects.running().aupdate(lease_expires_at=Now() - timedelta(seconds=1))
    await replay(replayed.pk, played, resolve=models)

    turns = [(t.status, t.prompt[:2]) async for t in Turn.objects.order_by("number")]
    assert turns == [("interrupted", "0:"), ("done", ""), ("done", "1:")]


async def test_an_interrupt_closes_the_turn_at_once(replayed, models):
    """Ctrl-C cancels; what follows must not wait for a lease."""
    played = long_recording(turns=2)
    task = asyncio.create_task(
        replay(
            replayed.pk,
            played,
            speed=0.001,
            resolve=models,
            report=lambda progress: progress.stored == 1 and asyncio.current_task().cancel(),
        )
    )
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await Turn.objects.aget()).status == Turn.Status.INTERRUPTED
    await replay(replayed.pk, played, resolve=models)
    assert await is_whole(replayed, played)


async def test_two_replays_of_one_conversation_store_nothing_twice(replayed, models):
    played = long_recording(turns=6)
    ended = await asyncio.gather(
        *(replay(replayed.pk, played, resolve=models) for _ in range(2)), return_exceptions=True
    )

    refused = [e for e in ended if isinstance(e, ReplayRefused)]
    assert [str(e) for e in refused] == [
        "Another process replays into this conversation right now."
    ] * len(refused)
    assert len(refused) <= 1
    assert await is_whole(replayed, played)


async def test_a_running_turn_of_somebody_else_is_waited_for(replayed, models):
    played = recording(user("Hello"), answer("Hi"))
    turn = await Turn.objects.acreate(
        thread=replayed,
        number=1,
        status="running",
        prompt="?",
        lease_token=replayed.pk,
        lease_expires_at=Now() + timedelta(minutes=1),
    )
    waits = []

    def report(progress):
        if progress.waiting_for and not waits:
            waits.append(progress.waiting_for)
            task = asyncio.ensure_future(sync_to_async(turn.close)(Turn.Status.DONE))
            waits.append(task)

    await replay(replayed.pk, played, resolve=models, report=report)

    assert waits[0] == "a turn of this conversation to end or lapse"
    assert len(await stored(replayed)) == 2


async def test_a_waiting_prompt_is_left_to_its_server(replayed, models):
    await sync_to_async(send)(replayed.pk, "Is anybody there?")
    played = recording(user("Hello"), answer("Hi"))

    await replay(replayed.pk, played, resolve=models)

    assert await is_whole(replayed, played)
    assert await Turn.objects.waiting().aget(prompt="Is anybody there?")


async def test_a_conversation_that_does_not_remember_is_replayed_without_memory(
    resource, profile, models
):
    profile.remembers = False
    thread = await sync_to_async(begin)(SOURCE, resource=resource, profile=profile, title="Bees")
    played = long_recording(turns=6)

    await replay(thread.pk, played, resolve=models)

    assert await is_whole(thread, played)
    assert not await MemoryRecord.objects.aexists()


async def test_a_failing_observer_does_not_stop_a_replay(replayed, models):
    models.answers["observer"] = lambda text: ""
    played = long_recording(turns=8)

    progress = await replay(replayed.pk, played, resolve=models)

    assert progress.finished
    assert await is_whole(replayed, played)
    assert await Cycle.objects.filter(status="failed").aexists()


async def test_time_passes_at_the_speed_asked_for(replayed, models):
    played = recording(user("Hello"), answer("Hi"))
    loop = asyncio.get_running_loop()
    began = loop.time()

    await replay(replayed.pk, played, speed=600, resolve=models)

    assert loop.time() - began >= 0.1


def test_options_are_kept_in_the_record(resource, profile):
    options = {"message_tokens": 3000}
    thread = begin(SOURCE, resource=resource, profile=profile, title="Bees", options=options)

    assert MemoryRecord.objects.get(thread=thread).config == options


def test_a_replay_knows_its_recording(replayed):
    again = Thread.objects.get(pk=replayed.pk)

    assert replays(again, SOURCE)
    assert not replays(again, Source("bees", "1" * 64))
    assert not replays(again, Source("wasps", SOURCE.digest))


def test_an_empty_conversation_can_be_used_once(resource, profile):
    thread = start(resource, profile, title="Empty")
    adopt(thread, SOURCE)

    with pytest.raises(ReplayRefused, match="“Empty” holds something else"):
        adopt(thread, Source("wasps", SOURCE.digest))
