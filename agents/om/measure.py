"""Replay a conversation, and take what the Actor would see of it next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection, transaction

from memory import llm
from memory.messages import plain_text
from memory.models import Line, Message, Resource, Thread
from memory.quality import MemoryLine, Remembered, Turn
from memory.recordings import Recorded, Recording
from memory.services.look import View, look
from memory.services.observe import observe_while_waiting
from memory.services.prepare import Prepared, prepare
from memory.tiers import OFFLINE
from memory.tokens import count_message

from ..models import AgentProfile
from ..services.replay import Progress, Report, Source, begin, replay

# How the tokens that the wanted ratio leaves are dealt out. Lines keep several times more per
# token than raw messages do, so messages get only what makes whole thoughts. The rest is for
# what is sent beside the text of the lines: headings, bullets and the preamble.
MESSAGE_SHARE = 0.08
LINE_SHARE = 0.87
BUFFERED_SHARE = 0.8
SMALLEST = 10

SEEN = ("memory", "message")

resolve_offline = partial(llm.shared, delay=0)


@dataclass(frozen=True)
class Measured:
    """Hold a conversation with what is left of it, and what both cost in real tokens."""

    recording: Recording
    remembered: Remembered
    raw_tokens: int
    sent_tokens: int
    raw_messages: int
    cycles: int


def _no_report(progress: Progress) -> None:
    """Say nothing."""


async def measure(
    recording: Recording,
    *,
    ratio: float,
    options: Mapping[str, Any] = MappingProxyType({}),
    report: Report = _no_report,
) -> Measured:
    """Replay a conversation with the offline model and return what the Actor sees after it.

    The thresholds are chosen so that memory comes out about ``ratio`` times smaller, unless
    the memory ``options`` given say otherwise.
    """
    raw_tokens = sum(count_message(recorded.message) for recorded in recording.messages)
    chosen = {**options_for(raw_tokens, ratio), **options}
    await sync_to_async(_hurry)()
    thread = await sync_to_async(_begin)(recording, chosen)
    progress = await replay(thread.pk, recording, resolve=resolve_offline, report=report)
    prepared = await _prepared(thread.pk, recording)
    view = await sync_to_async(look)(thread.pk)
    assert view is not None
    positions = await sync_to_async(_positions)(thread.pk)
    by_position = dict(zip(positions, recording.messages, strict=True))
    return Measured(
        recording=recording,
        remembered=Remembered(
            turns=turns_of(recording),
            questions=recording.questions,
            lines=tuple(_seen(view, by_position)),
        ),
        raw_tokens=raw_tokens,
        sent_tokens=sum(block.tokens for block in prepared.blocks if block.kind in SEEN),
        raw_messages=len(view.raw),
        cycles=progress.cycles,
    )


def options_for(raw_tokens: int, ratio: float) -> dict[str, Any]:
    """Return memory options under which so many tokens become so many times fewer."""
    budget = raw_tokens / ratio
    return {
        "message_tokens": max(SMALLEST, round(budget * MESSAGE_SHARE)),
        "observation_tokens": max(SMALLEST, round(budget * LINE_SHARE)),
        "buffer_tokens": BUFFERED_SHARE,
        # All lines are weighed against each other; condensing only the oldest half would
        # make what was said first the first to go.
        "reflection_buffer_activation": 1.0,
        "observer_model": OFFLINE,
        "reflector_model": OFFLINE,
    }


def turns_of(recording: Recording) -> tuple[Turn, ...]:
    """Return the messages as turns, those of two people under their names.

    Recordings of two people open every message with the speaker's name.
    """
    texts = [plain_text(recorded.message) for recorded in recording.messages]
    opened = [text.partition(": ") for text in texts]
    named = all(colon for _, colon, _ in opened) and len({name for name, _, _ in opened}) <= 2
    roles = {"request": "user", "response": "assistant"}
    return tuple(
        Turn(
            id=recorded.source_id,
            speaker=name if named else roles[recorded.message.kind],
            text=rest if named else text,
            date=recorded.at.date(),
            session=_session(recorded),
        )
        for recorded, text, (name, _, rest) in zip(recording.messages, texts, opened, strict=True)
    )


def _session(recorded: Recorded) -> str:
    """Return the sitting that a source id names before its colon; else the day is one."""
    session, colon, _ = recorded.source_id.rpartition(":")
    return session if colon else str(recorded.at.date())


def _hurry() -> None:
    """Let SQLite write without waiting for the disk: what is measured is thrown away."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=OFF")


@transaction.atomic
def _begin(recording: Recording, options: dict[str, Any]) -> Thread:
    number = Resource.objects.count() + 1
    resource = Resource.objects.create(
        key=f"quality-{number}", name=recording.title[:200], time_zone=recording.time_zone
    )
    profile, _ = AgentProfile.objects.get_or_create(
        slug="quality", defaults={"name": "Quality", "instructions": "Never asked anything."}
    )
    source = Source(recording.key, "")
    return begin(source, resource=resource, profile=profile, title=recording.title, options=options)


async def _prepared(thread_id: UUID, recording: Recording) -> Prepared:
    """Return the request that a prompt after the last message would be answered from."""
    thread = await Thread.objects.aget(pk=thread_id)
    prepare_next = partial(
        sync_to_async(prepare),
        thread_id,
        prompt_position=thread.last_position + 1,
        at=recording.messages[-1].at,
    )
    prepared: Prepared = await prepare_next()
    if prepared.wait_seconds:
        await observe_while_waiting(
            thread_id, seconds=prepared.wait_seconds, resolve=resolve_offline
        )
        prepared = await prepare_next(may_wait=False)
    return prepared


def _positions(thread_id: UUID) -> list[int]:
    messages = Message.objects.filter(thread=thread_id).order_by("position")
    return list(messages.values_list("position", flat=True))


def _seen(view: View, by_position: dict[int, Recorded]) -> Sequence[MemoryLine]:
    """Return all that the Actor sees, as lines: those of memory, then the raw messages."""
    lines = [_remembered(line, view, by_position) for line in view.lines]
    raw = [by_position[message.position] for message in view.raw]
    return lines + [
        MemoryLine(plain_text(r.message), r.at.date(), frozenset({r.source_id})) for r in raw
    ]


def _remembered(line: Line, view: View, by_position: dict[int, Recorded]) -> MemoryLine:
    first, last = line.first_position or 0, line.last_position or 0
    cited = [recorded for at, recorded in by_position.items() if first <= at <= last]
    said_at = line.said_at.astimezone(view.zone) if line.said_at else cited[0].at
    return MemoryLine(
        text=line.text.removeprefix("-> "),
        date=said_at.date(),
        sources=frozenset(recorded.source_id for recorded in cited),
    )
