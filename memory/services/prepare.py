"""Prepare a model request: activate what is ready, and say what the Actor sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

from django.db import transaction
from pydantic_ai.messages import CachePoint, ModelMessage, ModelRequest, UserPromptPart

from memory.dispatch import dispatch
from memory.engine import context
from memory.engine.lifecycle import Activate, ActivateReflection, Observe, decide
from memory.messages import load
from memory.models import Line, Message, Observation, Thread
from memory.models.record import CursorMoved, RecordMoved
from memory.tokens import count

from .activate import activate, activate_reflection
from .append import Fence, no_fence
from .look import View, line_value, view_of


@dataclass(frozen=True)
class Block:
    """Hold one part of a request: what it is, where it comes from, and what it costs.

    ``kind`` is memory, message, reminder or prompt; ``position`` that of a stored message.
    """

    kind: str
    message: ModelMessage
    tokens: int
    source: str = ""
    position: int | None = None
    hash: str = ""


@dataclass(frozen=True)
class Prepared:
    """Hold what the Actor is sent, as of one revision, and whether the turn should wait first."""

    blocks: tuple[Block, ...]
    revision: int = 0
    wait_seconds: float = 0

    @property
    def messages(self) -> list[ModelMessage]:
        """Return the request's messages, in order."""
        return [block.message for block in self.blocks]

    @property
    def tokens(self) -> int:
        """Return the tokens of all blocks."""
        return sum(block.tokens for block in self.blocks)

    @property
    def cacheable(self) -> int:
        """Return the tokens of the blocks that stay from one turn to the next."""
        tokens = 0
        for block in self.blocks:
            if block.kind not in ("memory", "message"):
                break
            tokens += block.tokens
        return tokens

    @property
    def hash(self) -> str:
        """Return one hash of all blocks."""
        return sha256("".join(block.hash for block in self.blocks).encode()).hexdigest()


def prepare(
    thread_id: UUID,
    *,
    prompt_position: int,
    at: datetime,
    may_wait: bool = True,
    fence: Fence = no_fence,
) -> Prepared:
    """Activate what is ready and return the request, in one short transaction.

    ``prompt_position`` is the running turn's prompt, which is always sent raw; ``at`` the
    turn's start, which fixes the day. ``wait_seconds`` of the result is above 0 when the
    turn should wait for an observation and prepare again. Raises Thread.DoesNotExist, and
    whatever the fence raises.
    """
    with transaction.atomic():
        fence()
        thread = Thread.objects.select_related("resource").get(pk=thread_id)
        if not thread.remembers:
            return Prepared(blocks=tuple(_plain(thread_id)))
        view, wait = _settle(thread, may_wait=may_wait)
        return Prepared(
            blocks=tuple(request_blocks(view, prompt_position=prompt_position, at=at)),
            revision=view.revision,
            wait_seconds=wait,
        )


def _settle(thread: Thread, *, may_wait: bool) -> tuple[View, float]:
    """Do what is due and needs no model; return the view after it and how long to wait."""
    view = view_of(thread)
    changed = False
    due = _due(view)
    for decision in due:
        if isinstance(decision, Activate | ActivateReflection):
            changed |= _apply(view, decision)
            if changed:
                view = view_of(thread)
    if any(not isinstance(d, Activate | ActivateReflection) for d in due):
        dispatch(thread.pk)
    waits = may_wait and any(isinstance(d, Observe) for d in due)
    return view, view.options.wait_seconds if waits else 0


def _due(view: View) -> Sequence[object]:
    waiting = Observation.objects.waiting_reflections(view.record.pk).exists()
    snapshot = view.snapshot(reflection_waits=waiting)
    return decide(snapshot, view.options.thresholds())


def _apply(view: View, decision: Activate | ActivateReflection) -> bool:
    """Apply a decision; when another process was first its result is as good as ours."""
    try:
        with transaction.atomic():
            if isinstance(decision, Activate):
                activate(view, decision)
            else:
                activate_reflection(view)
    except (RecordMoved, CursorMoved):
        pass
    return True


def request_blocks(view: View, *, prompt_position: int, at: datetime) -> list[Block]:
    """Return the blocks of a request: memory, earlier messages, reminder, the running turn."""
    raw = _with_prompt(view, prompt_position)
    earlier = [m for m in raw if m.position < prompt_position]
    current = [m for m in raw if m.position >= prompt_position]
    memory = memory_text(view, at)
    note = context.reminder(view.hints, remembering=bool(memory))
    blocks = []
    if memory:
        source = f"revision {view.revision}"
        blocks.append(_text_block("memory", memory, source=source, cached=True))
    blocks += [_message_block("message", message) for message in earlier]
    if note:
        blocks.append(_text_block("reminder", note, source="hints"))
    return blocks + [_message_block("prompt", message) for message in current]


def memory_text(view: View, at: datetime) -> str:
    """Return the memory block: the same bytes for the same lines on the same day."""
    lines: Sequence[Line] = view.lines
    today = at.astimezone(view.zone).date()
    return context.memory_block([line_value(line) for line in lines], today=today, tz=view.zone)


def _with_prompt(view: View, prompt_position: int) -> Sequence[Message]:
    if prompt_position > view.observed_through:
        return view.raw
    prompt = Message.objects.within(view.thread.pk, prompt_position, prompt_position)
    return [*prompt, *view.raw]


def _plain(thread_id: UUID) -> list[Block]:
    return [_message_block("message", m) for m in Message.objects.above(thread_id, 0)]


def _message_block(kind: str, message: Message) -> Block:
    return Block(
        kind=kind,
        message=load(message.payload),
        tokens=message.tokens,
        source="conversation",
        position=message.position,
        hash=f"{message.thread_id}:{message.position}",
    )


def _text_block(kind: str, text: str, *, source: str, cached: bool = False) -> Block:
    content: Sequence[str | CachePoint] = [text, CachePoint()] if cached else [text]
    return Block(
        kind=kind,
        message=ModelRequest(parts=[UserPromptPart(content)]),
        tokens=_count_once(text),
        source=source,
        hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    )


_count_once = lru_cache(maxsize=256)(count)
