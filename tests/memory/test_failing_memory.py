"""Memory that fails costs a turn its memory, and nothing else."""

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from pydantic_ai import Agent

from agents.models import RequestSnapshot, Turn
from agents.services.send import send
from agents.services.turn import run_turns
from memory.capability import TurnMemory
from memory.models import Line, Message
from memory.models.record import RecordMoved
from memory.publish import publish_with
from memory.services import kept
from memory.services.tail import MOST_MESSAGES, tail
from tests.fakes import user_texts
from tests.memory.services import play
from tests.strict.model import Strict

pytestmark = pytest.mark.django_db(transaction=True)


async def ask(thread, model, prompt):
    await sync_to_async(send)(thread.pk, prompt)
    await run_turns(thread.pk, resolve=model)


class Wrong(Exception):
    """Stand for anything that is wrong in memory."""


class Failing(TurnMemory):
    """Fail whenever memory is read."""

    failure = Wrong("The lines are gone.")

    def _remembering(self, new, early):
        raise self.failure


async def remembering(thread, model, kind=Failing, **given):
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    memory = kind(thread.pk, prompt_position=prompt, at=play.AT, resolve=model, **given)
    agent = Agent(model("strict"), capabilities=[memory])

    @agent.tool_plain
    def look() -> str:
        """Look."""
        return "A hive."

    return await agent.run(message_history=[play.question("Hello")])


async def test_a_run_goes_on_with_the_newest_messages_and_stores_all(thread):
    await sync_to_async(play.talk)(thread, 3)
    recorded = []
    strict = Strict([("look", {}), ("look", {})], [("look", {})])
    await remembering(thread, strict, record=lambda step, sent: recorded.append((step, sent)))

    assert strict.violations == []
    assert [len(request) for request in strict.requests] == [7, 9, 11]
    assert await Message.objects.acount() == 7 + 5
    assert [step for step, _ in recorded] == [1, 2, 3]
    assert {block.source for _, sent in recorded for block in sent.blocks} == {
        "conversation, without memory: The model call failed unexpectedly (Wrong): the server's "
        "log has the details."
    }


async def test_a_record_that_cannot_be_written_fails_nothing(thread):
    def refuse(step, prepared):
        raise Wrong("No room.")

    strict = Strict([("look", {})])
    await remembering(thread, strict, kind=TurnMemory, record=refuse)
    assert len(strict.requests) == 2


async def test_a_fence_that_refuses_ends_the_run_though_memory_failed(thread):
    def refuse():
        raise PermissionError("Lost.")

    strict = Strict()
    with pytest.raises(PermissionError):
        await remembering(thread, strict, fence=refuse)
    assert strict.requests == []


async def test_a_database_that_is_away_ends_the_run(thread):
    class Away(Failing):
        failure = OperationalError("The database is away.")

    strict = Strict()
    with pytest.raises(OperationalError):
        await remembering(thread, strict, kind=Away)
    assert strict.requests == []


async def test_the_tail_begins_with_a_prompt_and_keeps_the_running_turn(thread):
    say = sync_to_async(play.say)
    await say(thread, play.question(), play.calling("a"), play.returning("a"), play.answer())
    positions = await say(
        thread,
        play.question(play.words(400)),
        play.calling("b"),
        play.returning("b", text=play.words(400)),
        play.calling("c"),
        play.returning("c"),
    )
    made = await sync_to_async(tail)(
        thread.pk, prompt_position=positions[0], why="No reason.", room=500
    )
    sent = [block.position for block in made.blocks]
    assert sent == [positions[0], *positions[3:]]


async def test_a_tail_that_begins_within_a_step_leaves_that_step_out(thread):
    rows = [play.question()]
    for number in range(MOST_MESSAGES // 2 + 1):
        rows += [play.calling(f"c{number}"), play.returning(f"c{number}")]
    rows += [play.answer(), play.question("And now?")]
    positions = await sync_to_async(play.say)(thread, *rows)
    made = await sync_to_async(tail)(thread.pk, prompt_position=positions[-1], why="No reason.")
    assert [block.position for block in made.blocks] == [positions[-1]]


async def test_a_turn_of_the_server_goes_on_and_says_so(thread):
    strict = Strict()
    await sync_to_async(play.talk)(thread, 6)
    await sync_to_async(play.buffer_all)(thread)
    await ask(thread, strict, "one")
    assert user_texts(strict.requests[-1])[0].startswith("<memory>")
    assert await Line.objects.aupdate(kind="odd")
    await sync_to_async(kept.forget_everything)()
    await ask(thread, strict, "two")

    assert [t.status async for t in Turn.objects.order_by("number")] == ["done"] * 2
    assert user_texts(strict.requests[-1])[-2:] == ["one", "two"]
    assert await Message.objects.acount() == 12 + 4
    shot = await RequestSnapshot.objects.aget(turn__number=2)
    sent = [block for block in shot.blocks if "first" in block]
    assert all("without memory" in block["source"] for block in sent)


async def test_a_request_is_prepared_anew_when_memory_was_erased_while_it_was_read(thread):
    recorded = []

    def moved(step, prepared):
        recorded.append(prepared)
        if len(recorded) == 1:
            raise RecordMoved("Erased meanwhile.")

    strict = Strict([("look", {})])
    await remembering(thread, strict, kind=TurnMemory, record=moved)

    assert len(recorded) == 3
    assert not any("without memory" in b.source for p in recorded for b in p.blocks)
    assert await Message.objects.acount() == 4


async def test_what_is_stored_is_not_stored_again_when_nobody_can_be_told(thread):
    def fail(event):
        raise RuntimeError("cannot schedule new futures after shutdown")

    publish_with(fail)
    try:
        strict = Strict([("look", {})])
        await remembering(thread, strict, kind=TurnMemory)
    finally:
        publish_with(None)

    assert strict.violations == []
    assert await Message.objects.acount() == 4
