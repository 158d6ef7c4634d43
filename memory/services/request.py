"""Write down what the Actor is sent: memory, earlier messages, reminders, the running turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import groupby
from typing import Any
from uuid import UUID

from pydantic_ai.messages import CachePoint, ModelMessage, ModelRequest, UserPromptPart

from memory.engine import context
from memory.engine.recall import guidance
from memory.engine.window import RESERVED, left_out, window_of
from memory.extraction import as_text, resolve
from memory.models import Message
from memory.models.blob import digest
from memory.tokens import BY_LINE, count

from .kept import Raw, Recent, recent
from .look import View, line_value

LEFT_OUT = "left_out"


@dataclass(frozen=True)
class Block:
    """Hold one part of a request: what it is, where it comes from, and what it costs.

    ``kind`` is memory, message, others, reminder or prompt, or left_out for messages that are
    not sent; ``position`` is that of a stored message, ``text`` what a block made for this
    request says.
    """

    kind: str
    message: ModelMessage
    tokens: int
    source: str = ""
    position: int | None = None
    text: str = ""

    @property
    def hash(self) -> str:
        """Return the key the text is kept under; a stored message needs none."""
        return digest(self.text) if self.text else ""


@dataclass(frozen=True)
class Prepared:
    """Hold what the Actor is sent, as of one revision, and whether the turn should wait first.

    ``view`` is what it was made of; None for a thread that does not remember.
    """

    blocks: tuple[Block, ...]
    revision: int = 0
    wait_seconds: float = 0
    view: View | None = field(default=None, compare=False, repr=False)

    @property
    def messages(self) -> list[ModelMessage]:
        """Return the request's messages, in order."""
        return [block.message for block in self.sent]

    @cached_property
    def sent(self) -> list[Block]:
        """Return the blocks without those that are left out."""
        return [block for block in self.blocks if block.kind != LEFT_OUT]

    @cached_property
    def tokens(self) -> int:
        """Return the tokens of all that is sent."""
        return sum(block.tokens for block in self.sent)

    @property
    def cacheable(self) -> int:
        """Return the tokens of the blocks that stay from one turn to the next."""
        tokens = 0
        for block in self.sent:
            if block.kind not in ("memory", "message"):
                break
            tokens += block.tokens
        return tokens

    def summary(self) -> list[dict[str, Any]]:
        """Return the blocks as JSON: texts by hash, runs of stored messages by positions."""
        return list(_summary(self.blocks))

    @property
    def texts(self) -> list[str]:
        """Return the texts that were made for this request."""
        return [block.text for block in self.blocks if block.text]

    @property
    def hash(self) -> str:
        """Return one hash of all blocks."""
        parts = (f"{b.kind} {b.position or b.hash}" for b in self.sent)
        return sha256("\n".join(parts).encode()).hexdigest()


def _summary(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    # A stored message is named by its position and never changes: it needs no copy, and a
    # run of a hundred needs one entry.
    for (kind, source, start), run in groupby(enumerate(blocks), key=_run):
        of_run = [block for _, block in run]
        entry = {"kind": kind, "source": source, "tokens": sum(b.tokens for b in of_run)}
        if start is None:
            yield {**entry, "hash": of_run[0].hash}
        else:
            yield {**entry, "first": of_run[0].position, "last": of_run[-1].position}


def _run(item: tuple[int, Block]) -> tuple[str, str, int | None]:
    """Return what blocks of one run share: between two of them no position is left out."""
    index, block = item
    return block.kind, block.source, None if block.position is None else block.position - index


def request_blocks(
    view: View, *, prompt_position: int, at: datetime, overhead: int = 0
) -> list[Block]:
    """Return the blocks of a request: memory, earlier messages, reminders, the running turn.

    ``overhead`` are the tokens of instructions and tools, which share the model's window.
    """
    raw = _with_prompt(view, prompt_position)
    earlier = [m for m in raw if m.position < prompt_position]
    current = [m for m in raw if m.position >= prompt_position]
    before = [_memory(view, at)]
    between = [_others(view), _reminder(view, remembering=before[0] is not None)]
    made = [block for block in (*before, *between) if block is not None]
    dropped, within = _overflow(
        view, earlier, current, overhead + sum(block.tokens for block in made)
    )
    blocks = [
        *(message_block(LEFT_OUT, m) for m in earlier[:dropped]),
        *before,
        *(message_block("message", m) for m in earlier[dropped:]),
        *between,
        *(message_block("prompt", m) for m in current[:1]),
        *(message_block(LEFT_OUT, m) for m in current[1 : within + 1]),
        *(message_block("prompt", m) for m in current[within + 1 :]),
    ]
    return [block for block in blocks if block is not None]


def _overflow(
    view: View, earlier: Sequence[Raw], current: Sequence[Raw], rest: int
) -> tuple[int, int]:
    """Return how many messages to leave out, so that the model's window holds the others."""
    window = window_in(view)
    if window is None:
        return 0, 0
    room = round(window * (1 - RESERVED)) - rest
    return left_out([m.pending for m in earlier], [m.pending for m in current], room=room)


def window_in(view: View) -> int | None:
    """Return how many tokens the Actor's model takes in; None when nobody knows."""
    return view.options.context_tokens or window_of(view.actor_model)


def _memory(view: View, at: datetime) -> Block | None:
    text, tokens = memory_text(view, at)
    if not text:
        return None
    return text_block("memory", text, tokens, source=f"revision {view.revision}")


def memory_text(view: View, at: datetime) -> tuple[str, int]:
    """Return the memory block and its tokens: the same bytes for the same lines and day."""
    today = at.astimezone(view.zone).date()
    retrieval = view.options.retrieval
    # Only ranges depend on which thread of a shared memory asks.
    key = (today, view.zone.key, retrieval, view.thread.pk if retrieval else None)
    told = view.memory.texts.get(key)
    if told is None:
        text = context.memory_block(
            [line_value(line) for line in view.lines],
            today=today,
            tz=view.zone,
            ranges=retrieval is not None,
            recall_guidance=guidance(retrieval.scope, retrieval.instructions) if retrieval else "",
            threads=_threads(view) if retrieval else {},
        )
        told = text, count(text)
        view.memory.texts.put(key, told)
    return told


def _threads(view: View) -> dict[Hashable, str]:
    """Return by observation the thread it is of, where that is another than this one."""
    of = {line.observation_id: line.of_thread for line in view.lines}  # type: ignore[attr-defined]
    return {pk: str(thread) for pk, thread in of.items() if thread not in (None, view.thread.pk)}


def _others(view: View) -> Block | None:
    text, tokens = others_text(view)
    return text_block("others", text, tokens, source="other conversations") if text else None


def others_text(view: View) -> tuple[str, int]:
    """Return what other threads of a shared record say that is not observed, and its tokens."""
    if not view.others:
        return "", 0
    budget = view.options.other_conversations_tokens
    places = tuple(
        (
            other.thread,
            other.title,
            other.observed_through,
            *(raw.position for raw in other.raw[-1:]),
        )
        for other in view.others
    )
    state = (view.record.pk, view.record.epoch, view.zone.key, budget, places)
    kept = _told.get(view.thread.pk)
    if kept is None or kept[0] != state:
        told = [
            context.OtherConversation(other.label, other.title, [raw.value for raw in other.raw])
            for other in view.others
        ]
        text = context.other_conversations(told, budget=budget, tokenizer=BY_LINE, tz=view.zone)
        kept = state, text, BY_LINE.count(text)
        _told.put(view.thread.pk, kept)
    return kept[1], kept[2]


_told: Recent[tuple[Hashable, str, int]] = recent(512)


def _reminder(view: View, *, remembering: bool) -> Block | None:
    wanted = view.options.continuation_hints
    told = [e for e in resolve(view.options.extract) if e.include_previous]
    text = context.reminder(
        view.hints,
        remembering=remembering,
        extracted={
            e.slug: as_text(view.extracted[e.slug]) for e in told if e.slug in view.extracted
        },
        want_task=wanted.current_task,
        want_suggestion=wanted.suggested_response,
    )
    return text_block("reminder", text, _count_once(text), source="hints") if text else None


def plain(thread_id: UUID) -> Prepared:
    """Return the request of a thread that does not remember: all of its messages."""
    rows = Message.objects.above(thread_id, 0)
    return Prepared(blocks=tuple(message_block("message", Raw(row)) for row in rows))


def _with_prompt(view: View, prompt_position: int) -> Sequence[Raw]:
    if prompt_position > view.observed_through:
        return view.raw
    prompt = Message.objects.within(view.thread.pk, prompt_position, prompt_position)
    return [*(Raw(row) for row in prompt), *view.raw]


def message_block(kind: str, raw: Raw, *, source: str = "conversation") -> Block:
    """Return the block that sends a stored message as it is."""
    return Block(kind, raw.message, raw.tokens, source, raw.position)


def text_block(kind: str, text: str, tokens: int, *, source: str) -> Block:
    """Return the block that says a text made for the request; a cache may end behind memory."""
    pieces = _around_body(text)
    content: Sequence[str | CachePoint] = [*pieces, CachePoint()] if kind == "memory" else pieces
    message = ModelRequest(parts=[UserPromptPart(content)])
    return Block(kind=kind, message=message, tokens=tokens, source=source, text=text)


def _around_body(text: str) -> list[str]:
    """Return a text in pieces that are the same when joined: what a long body is framed by, and it.

    Every text of every request is searched for tags that only a framework may write; where
    there is no tag at all, as in observations, that is quick, and it is not where there is one.
    """
    first, last = text.rfind(BODY) + len(BODY), text.rfind("\n</")
    before_last = text.rfind("\n</", 0, last)
    if BODY not in text or before_last < first:
        return [text]
    return [text[:first], text[first:before_last], text[before_last:]]


BODY = "\n<observations>\n"

_count_once = lru_cache(maxsize=256)(count)
