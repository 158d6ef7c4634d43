"""A turn as it is told: deltas, messages, tools and its end, equal to what is stored."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import tokens
from agents.api import stream
from agents.api.shapes import answered, said
from agents.api.stream import Told, follow, tell, written
from agents.models import AgentProfile, Turn
from agents.services.send import send
from agents.services.turn import run_turns, stop
from memory.models import Message
from tests.agents.services.test_turn import Actor

pytestmark = pytest.mark.django_db(transaction=True)


def events_of(text):
    """Return the events of a stream by name and content."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


class Silence:
    """Hear nothing, at once."""

    async def hear(self, seconds):
        await asyncio.sleep(0)


async def told(thread, number=1):
    """Return everything that is told of a turn until it ends."""
    return events_of("".join([text async for text in follow(thread.pk, number)]))


def deltas(events, step):
    return "".join(e["text"] for name, e in events if name == "delta" and e["step"] == step)


async def run_and_tell(thread, actor):
    await sync_to_async(send)(thread.pk, "Hello")
    following = asyncio.create_task(told(thread))
    await asyncio.sleep(0)
    await run_turns(thread.pk, resolve=actor)
    async with asyncio.timeout(20):
        return await following


async def test_what_is_told_is_what_is_stored(thread):
    events = await run_and_tell(thread, Actor(["Bees ", "live ", "in a hive."]))

    stored = await Message.objects.aget(thread=thread, position=2)
    name, end = events[-1]
    assert (name, end["status"], end["text"]) == ("end", "done", stored.text)
    assert deltas(events, 1) == stored.text
    assert events[0][0] == "turn"


async def test_the_text_comes_while_it_is_said(thread):
    half = asyncio.Event()
    actor = Actor(["Bees live ", half, "in a hive."])
    await sync_to_async(send)(thread.pk, "Hello")
    running = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    events = []
    async with asyncio.timeout(20):
        async for text in follow(thread.pk, 1):
            events += events_of(text)
            if deltas(events, 1) and not half.is_set():
                assert deltas(events, 1) == "Bees live "
                assert (await Turn.objects.aget()).status == "running"
                half.set()
        await running

    assert deltas(events, 1) == events[-1][1]["text"] == "Bees live in a hive."


async def test_tools_are_told_with_what_they_return(thread):
    actor = Actor(["Let me look. ", ("current_time", "{}")], ["It is noon."])

    events = await run_and_tell(thread, actor)

    names = [name for name, _ in events if name not in ("delta", "turn")]
    assert names == ["message", "tool_call", "tool_result", "message", "end"]
    called, result = (dict(events)[name] for name in ("tool_call", "tool_result"))
    assert called["name"] == result["name"] == "current_time"
    assert called["id"] == result["id"]
    assert (deltas(events, 1), deltas(events, 2)) == ("Let me look. ", "It is noon.")
    assert events[-1][1]["text"] == "Let me look. \n\nIt is noon."


async def test_a_failure_ends_the_stream_with_its_reason(thread):
    events = await run_and_tell(thread, Actor(["Bees ", RuntimeError("gone")]))

    name, end = events[-1]
    assert (name, end["status"], end["text"]) == ("end", "failed", "Bees ")
    assert end["error"]


async def test_a_stop_ends_the_stream_with_what_was_said(thread):
    never = asyncio.Event()
    actor = Actor(["Bees ", never])
    await sync_to_async(send)(thread.pk, "Hello")
    following = asyncio.create_task(told(thread))
    running = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    async with asyncio.timeout(20):
        await actor.reached.wait()
        await sync_to_async(stop)(thread.pk)
        await running
        events = await following

    assert events[-1][1]["status"] == "stopped"
    assert events[-1][1]["text"] == deltas(events, 1) == "Bees "


async def test_a_turn_that_ended_is_told_from_its_beginning(thread):
    actor = Actor([("current_time", "{}")], ["Noon."])
    live = await run_and_tell(thread, actor)

    again = await told(thread)

    assert [e for e in again if e[0] != "turn"] == [e for e in live if e[0] != "turn"]


async def test_without_a_single_event_the_rows_tell_everything(thread):
    await sync_to_async(send)(thread.pk, "Hello")
    running = asyncio.create_task(run_turns(thread.pk, resolve=Actor(["Bees ", "live."])))
    async with asyncio.timeout(20):
        events = [event async for event in tell(thread.pk, 1, Silence(), check_seconds=0.01)]
        await running

    assert deltas(events, 1) == events[-1][1]["text"] == "Bees live."


async def test_a_withdrawn_message_ends_its_stream(thread):
    from agents.services.send import withdraw

    await sync_to_async(send)(thread.pk, "Hello")
    await sync_to_async(withdraw)(thread.pk, 1)

    assert (await told(thread))[-1][1]["status"] == "withdrawn"


async def test_a_conversation_that_goes_ends_its_streams(thread):
    assert await told(thread, 7) == [("error", {"detail": stream.GONE})]


async def test_a_message_is_sent_and_its_answer_streamed(ada, thread):
    _, secret = await sync_to_async(tokens.make)(ada, "Test")
    client = AsyncClient()
    running = asyncio.create_task(_answer(thread))
    response = await client.post(
        f"/api/v1/threads/{thread.pk}/messages?stream=true",
        json.dumps({"text": "Hello"}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    async with asyncio.timeout(20):
        text = b"".join([piece async for piece in response.streaming_content]).decode()
        await running

    events = events_of(text)
    stored = await Message.objects.aget(thread=thread, position=2)
    assert deltas(events, 1) == events[-1][1]["text"] == stored.text == "Bees live."


async def _answer(thread):
    while not await Turn.objects.filter(thread=thread).aexists():
        await asyncio.sleep(0.01)
    await run_turns(thread.pk, resolve=Actor(["Bees ", "live."]))


async def test_work_that_is_waited_for_tells_what_it_did(ada, thread):
    await AgentProfile.objects.filter(slug=thread.agent).aupdate(model="offline")
    await sync_to_async(send)(thread.pk, "I keep bees. " * 200)
    await run_turns(thread.pk, resolve=Actor(["Understood."]))
    _, secret = await sync_to_async(tokens.make)(ada, "Test")
    response = await AsyncClient().post(
        f"/api/v1/threads/{thread.pk}/operations/activate",
        json.dumps({"wait": True}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    outcome = json.loads(b"".join([piece async for piece in response.streaming_content]))

    assert (outcome["operation"], outcome["well"]) == ("activate", True)
    assert outcome["why"] == "Nothing is buffered."


# ---- without a database: what is said of rows, whatever their order of arrival


def row(position, payload, kind="response"):
    return SimpleNamespace(position=position, payload=payload, kind=kind)


def reply(*texts):
    return {"parts": [{"part_kind": "text", "content": text} for text in texts]}


def turn_at(status="running", draft="", first=1):
    return SimpleNamespace(status=status, number=1, draft_text=draft, first_position=first)


TEXTS = st.lists(st.text(max_size=8), min_size=1, max_size=4)


@pytest.mark.django_db(transaction=False)
@settings(deadline=None)
@given(steps=st.lists(TEXTS, min_size=1, max_size=3), seen=st.data())
def test_deltas_of_a_step_add_up_to_its_text_whatever_is_heard(steps, seen):
    """Deltas come late, twice, shortened and of other steps; the rows come when they come."""
    told, events = Told(), list(Told().see(turn_at(), []))
    told.after = 1
    for number, texts in enumerate(steps, 2):
        whole = said(reply(*texts))
        for _ in range(seen.draw(st.integers(0, 3))):
            at = seen.draw(st.integers(0, len(whole)))
            after = seen.draw(st.sampled_from([number - 1, number - 1, 0, number + 5]))
            events += told.hear({"after": after, "text": whole[:at], "turn": 1})
        events += told.see(turn_at(), [row(number, reply(*texts))])
    for step, texts in enumerate(steps, 1):
        assert deltas(events, step) == said(reply(*texts))


@given(texts=TEXTS)
def test_what_a_response_says_is_joined_as_it_is_streamed(texts):
    running = ""
    for text in texts:
        running += ("\n\n" if running else "") + text

    assert said(reply(*texts)) == running


@given(texts=st.lists(TEXTS, max_size=3))
def test_an_answer_leaves_silent_steps_out(texts):
    payloads = [reply(*each) for each in texts]

    assert answered(payloads) == "\n\n".join(s for s in map(said, payloads) if s)


@given(text=st.text())
def test_no_text_breaks_out_of_its_event(text):
    """Line ends in a text must not end the event."""
    sent = written("delta", {"text": text})

    assert sent.count("\n\n") == 1
    assert json.loads(sent.split("data: ", 1)[1]) == {"text": text}
