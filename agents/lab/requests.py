"""Read what each pane of a lab would send next, by the function that builds the real request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone

from agents.lab.matrix import Fact, Place, Read, Seat
from agents.lab.models import Lab, Pane
from agents.models import AgentProfile, Turn
from agents.services.told import told
from memory.messages import dump
from memory.models import Blob, Cycle, Line, MemoryRecord, Thread
from memory.services.look import View, look
from memory.services.request import LEFT_OUT, Block, plain, request_blocks

MOST_CALLS = 200

NAMES = {
    "memory": "observations",
    "message": "messages",
    "others": "other conversations",
    "reminder": "hints",
    "prompt": "messages",
}


def seats_of(lab: Lab) -> list[Seat]:
    """Return the panes of a lab as they were laid out, with what was said in each."""
    panes = list(lab.panes.select_related("resource"))
    said: dict[UUID, list[str]] = defaultdict(list)
    turns = Turn.objects.filter(thread__in=[pane.thread_id for pane in panes])
    turns = turns.exclude(status=Turn.Status.WITHDRAWN)
    for thread, prompt in turns.values_list("thread", "prompt"):
        said[thread].append(prompt)
    return [_seat(pane, said[pane.thread_id]) for pane in panes]


def _seat(pane: Pane, said: Sequence[str]) -> Seat:
    shares = pane.resource.scope == MemoryRecord.Scope.RESOURCE
    memory = f"resource {pane.resource_id}" if shares else f"thread {pane.thread_id}"
    return Seat(pane.letter, str(pane.thread_id), memory, tuple(said))


def facts_of(lab: Lab) -> list[Fact]:
    """Return the texts a lab looks for."""
    return [Fact(each["text"], each.get("pane") or "") for each in lab.facts]


def reader(lab: Lab, *, deep: bool = True) -> Read:
    """Return a function that reads the places of a seat of this lab.

    ``deep`` reads memory's rows and the models' calls as well as the next request.
    """
    threads = {pane.letter: pane.thread_id for pane in lab.panes.all()}

    def read(seat: Seat) -> list[Place]:
        thread_id = threads[seat.pane]
        return [*next_request(thread_id), *(kept(thread_id) if deep else ())]

    return read


def next_request(thread_id: UUID) -> list[Place]:
    """Return what the thread's agent would be sent next, block by block."""
    view = look(thread_id)
    return [*_told(thread_id, view), *_places(next_blocks(thread_id, view))]


def next_blocks(thread_id: UUID, view: View | None) -> Sequence[Block]:
    """Return the blocks of the next request but instructions and tools, before a new prompt."""
    if view is None:
        return plain(thread_id).sent
    after = view.thread.last_position + 1
    blocks = request_blocks(view, prompt_position=after, at=timezone.now())
    return [block for block in blocks if block.kind != LEFT_OUT]


def sizes(thread_id: UUID) -> dict[str, int]:
    """Return what the next request is made of: tokens by the name of their kind."""
    found: dict[str, int] = defaultdict(int)
    for block in next_blocks(thread_id, look(thread_id)):
        found[NAMES.get(block.kind, block.kind)] += block.tokens
    return dict(found)


def _told(thread_id: UUID, view: View | None) -> Iterator[Place]:
    """Yield what the agent is told before everything else: its instructions and its tools."""
    agent = Thread.objects.filter(pk=thread_id).values("agent")
    profile = AgentProfile.objects.filter(slug__in=agent).first()
    for each in told(profile, view.options if view is not None else None):
        yield Place(each.kind, each.text)


def _places(blocks: Iterable[Block]) -> Iterator[Place]:
    for block in blocks:
        text = block.text or "\n".join(_strings(dump(block.message)))
        where = f" {block.position}" if block.position is not None else ""
        yield Place(f"{NAMES.get(block.kind, block.kind)}{where}", text)


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a message, tool calls and results included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def kept(thread_id: UUID) -> list[Place]:
    """Return what the memory of a thread holds, visible or not, and what was asked for it."""
    view = look(thread_id)
    if view is None:
        return []
    record = view.record.pk
    lines = Line.objects.filter(observation__record=record).values_list("text", flat=True)
    places = [Place("a line of its memory", text, sent=False) for text in lines]
    cycles = Cycle.objects.filter(record=record).order_by("-started_at")
    asked = list(cycles.values_list("request_hash", "reply_hash")[:MOST_CALLS])
    texts = Blob.objects.filter(hash__in={each for pair in asked for each in pair if each})
    return [
        *places,
        *(
            Place("a call of its Observer", text, sent=False)
            for text in texts.values_list("text", flat=True)
        ),
    ]
