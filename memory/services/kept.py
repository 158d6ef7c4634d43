"""Keep in this process what the rows say and can no longer change.

Theory of operation
-------------------
Messages are immutable and positions never used twice, so what lies between two positions of
a thread is the same for ever; so is what a record shows at a revision, and which
observations wait between two positions in one epoch. Each of these is kept under the
very numbers that name it, which a reader takes from the database first: an entry is either
exactly right or not found, whichever process wrote the rows.

Nothing that a transaction might still take back is kept: what is read is kept only as far as
it was committed before, and what is written only on commit. Erasing raises the epoch, which
is part of every key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q
from pydantic_ai.messages import ModelMessage, MultiModalContent

from memory.detach import Missing
from memory.engine import values
from memory.engine.cuts import Pending
from memory.engine.lifecycle import Row
from memory.engine.size import listed_tokens
from memory.messages import attachments, load, parts_of
from memory.models import Line, Message, Observation, ReflectionSource

Value = TypeVar("Value")

MOST_TOKENS = 10_000_000
"""Of messages that are kept: a token takes about 12 bytes, as stored and as models are sent it."""
PER_MESSAGE = 200
MOST_BUFFERED = 20_000
MOST_SHOWN = 50_000
"""Lines that records show; one takes about a kilobyte."""
MOST_WRITTEN = 10_000
"""Lines that wait: those shown since are of no use any more, and nobody says which they are."""
MOST_TOLD = 500_000
"""Tokens of what one record's lines are told as; its threads may each be told in their way."""
MOST_REFLECTIONS = 20_000

_RETURNS = ("tool-return", "retry-prompt")


@dataclass(frozen=True)
class Raw:
    """Hold one stored message, and what is made of it when it is first asked for."""

    row: Message

    @property
    def position(self) -> int:
        """Return the place in the thread."""
        return self.row.position

    @property
    def tokens(self) -> int:
        """Return what the message costs each time it is sent."""
        return self.row.tokens

    @property
    def created_at(self) -> datetime:
        """Return when the message was stored."""
        return self.row.created_at

    @cached_property
    def message(self) -> ModelMessage:
        """Return the message as models are sent it."""
        return load(self.row.payload)

    @cached_property
    def pending(self) -> Pending:
        """Return what the engine needs to know to cut before or after it."""
        parts = self.row.payload["parts"]
        return Pending(
            position=self.row.position,
            kind=values.MessageKind(self.row.kind),
            tokens=self.row.tokens,
            calls=frozenset(p["tool_call_id"] for p in parts if p["part_kind"] == "tool-call"),
            returns=frozenset(
                p["tool_call_id"]
                for p in parts
                if p["part_kind"] in _RETURNS and p.get("tool_name")
            ),
        )

    @cached_property
    def value(self) -> values.Message:
        """Return the message as the engine writes it down."""
        return values.Message(
            position=self.row.position,
            kind=values.MessageKind(self.row.kind),
            parts=parts_of(self.message),
            tokens=self.row.tokens,
            at=self.row.created_at,
        )

    @property
    def files(self) -> Sequence[tuple[values.Part, MultiModalContent]]:
        """Return the pictures and files that are still there, each with the part that names it."""
        named = [p for p in self.value.parts if p.kind is values.PartKind.ATTACHMENT]
        pairs = zip(named, attachments(self.message), strict=True)
        return [(part, item) for part, item in pairs if not isinstance(item, Missing)]


@dataclass(frozen=True)
class _Stretch:
    """Hold all messages of a thread from ``after`` on, up to ``through``."""

    epoch: Hashable
    after: int
    through: int
    messages: tuple[Raw, ...]

    def within(self, after: int, through: int) -> tuple[Raw, ...]:
        return tuple(raw for raw in self.messages if after < raw.position <= through)


class Recent(Generic[Value]):
    """Hold the values used last, up to a weight; may be used from any thread."""

    def __init__(self, most: int, weigh: Callable[[Value], int] = lambda value: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return the value kept under a key, if any."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value; the one used longest ago gives way."""
        with self._lock:
            if key in self._values:
                self._weight -= self._weigh(self._values.pop(key))
            self._values[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._most and len(self._values) > 1:
                _, oldest = self._values.popitem(last=False)
                self._weight -= self._weigh(oldest)

    def clear(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._values.clear()
            self._weight = 0


_STORES: list[Recent[Any]] = []


def recent(most: int, weigh: Callable[[Value], int] = lambda value: 1) -> Recent[Value]:
    """Return a new store; ``forget_everything`` empties it with the others."""
    store = Recent(most, weigh)
    _STORES.append(store)
    return store


def size_of(messages: Iterable[Raw]) -> int:
    """Return what keeping messages weighs, in tokens."""
    return PER_MESSAGE + sum(PER_MESSAGE + raw.tokens for raw in messages)


_stretches: Recent[_Stretch] = recent(MOST_TOKENS, lambda stretch: size_of(stretch.messages))


def messages(
    thread_id: UUID, *, epoch: Hashable, after: int, through: int, keep: bool = True
) -> tuple[Raw, ...]:
    """Return the messages of a thread from above one position up to another.

    ``epoch`` names the record's, and so changes whenever messages may have been erased;
    ``keep`` is false where the calling transaction may have written any of them itself.
    """
    if through <= after:
        return ()
    kept = _stretches.get(thread_id)
    if kept is None or kept.epoch != epoch or not kept.after <= after <= kept.through:
        rows = _read(thread_id, after, through)
    elif kept.through < through:
        rows = (*kept.within(after, kept.through), *_read(thread_id, kept.through, through))
    else:
        rows = kept.within(after, through)
    if keep and (kept is None or kept.epoch != epoch or through >= kept.through):
        _stretches.put(thread_id, _Stretch(epoch, after, through, rows))
    return rows


AT_ONCE = 200


def messages_ahead(wanted: Sequence[tuple[UUID, int, int]], *, epoch: Hashable) -> None:
    """Keep messages that will be asked for: of threads, from above one position up to another.

    Many threads take few statements. Not for a transaction that may have written any of them.
    """
    missing = [one for one in wanted if not _is_kept(*one, epoch)]
    for start in range(0, len(missing), AT_ONCE):
        some = missing[start : start + AT_ONCE]
        found: dict[UUID, list[Raw]] = {thread_id: [] for thread_id, _, _ in some}
        for row in Message.objects.filter(_any_of(some)).order_by("thread_id", "position"):
            found[row.thread_id].append(Raw(row))
        for thread_id, after, through in some:
            stretch = _Stretch(epoch, after, through, tuple(found[thread_id]))
            _stretches.put(thread_id, stretch)


def _is_kept(thread_id: UUID, after: int, through: int, epoch: Hashable) -> bool:
    kept = _stretches.get(thread_id)
    if through <= after:
        return True
    return (
        kept is not None and kept.epoch == epoch and kept.after <= after < through <= kept.through
    )


def _any_of(wanted: Sequence[tuple[UUID, int, int]]) -> Q:
    ranges = [
        Q(thread_id=thread_id, position__gt=after, position__lte=through)
        for thread_id, after, through in wanted
    ]
    return Q(*ranges, _connector=Q.OR)


def _read(thread_id: UUID, after: int, through: int) -> tuple[Raw, ...]:
    found = Message.objects.filter(
        thread_id=thread_id, position__gt=after, position__lte=through
    ).order_by("position")
    return tuple(Raw(row) for row in found)


def appended(thread_id: UUID, raws: Sequence[Raw], first: int) -> None:
    """Keep messages that were committed at positions from ``first`` on."""
    kept = _stretches.get(thread_id)
    if kept is None or kept.through != first - 1:
        return
    rows = (*kept.messages, *raws)
    _stretches.put(thread_id, _Stretch(kept.epoch, kept.after, raws[-1].position, rows))


@dataclass(frozen=True)
class Shown:
    """Hold what a record shows at a revision, and what was made of it."""

    revision: int
    epoch: int
    lines: tuple[Line, ...]
    texts: Recent[tuple[str, int]] = field(
        default_factory=lambda: Recent(MOST_TOLD, lambda told: told[1])
    )
    sizes: dict[str, int] = field(default_factory=dict)

    def tokens(self, zone: ZoneInfo) -> int:
        """Return the tokens of all lines as they are sent, under the days of a time zone."""
        if zone.key not in self.sizes:
            self.sizes[zone.key] = listed_tokens(self.lines, zone)
        return self.sizes[zone.key]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows that a Reflector may condense, without their pinned lines."""
        sizes: dict[UUID, int] = {}
        for line in self.lines:
            if not line.pinned and line.of_kind != Observation.Kind.NOTE:  # type: ignore[attr-defined]
                sizes[line.observation_id] = sizes.get(line.observation_id, 0) + line.tokens
        return tuple(Row(observation, tokens) for observation, tokens in sizes.items())


_shown: Recent[Shown] = recent(MOST_SHOWN, lambda shown: 1 + len(shown.lines))


def shown(
    record_id: UUID,
    *,
    revision: int,
    epoch: int,
    read: Callable[[], Sequence[Line]],
    keep: bool = True,
) -> Shown:
    """Return what a record shows at a revision, read if it is not kept."""
    kept = _shown.get(record_id)
    if kept is None or (kept.revision, kept.epoch) != (revision, epoch):
        kept = Shown(revision, epoch, tuple(read()))
        if keep:
            _shown.put(record_id, kept)
    return kept


def show(record_id: UUID, value: Shown) -> None:
    """Keep what a record shows from now on; call it on commit."""
    _shown.put(record_id, value)


_waiting: Recent[tuple[Hashable, tuple[Observation, ...]]] = recent(
    MOST_BUFFERED, lambda value: 1 + len(value[1])
)


def buffered(
    record_id: UUID,
    thread_id: UUID,
    *,
    place: tuple[int, int, int],
    read: Callable[[], Sequence[Observation]],
    keep: bool = True,
) -> tuple[Observation, ...]:
    """Return the observations that wait at a place: epoch, shown and written through."""
    _, observed_through, written_through = place
    if observed_through == written_through:
        return ()
    kept = _waiting.get((record_id, thread_id))
    if kept is None or kept[0] != place:
        kept = place, tuple(read())
        if keep:
            _waiting.put((record_id, thread_id), kept)
    return kept[1]


def buffered_ahead(
    record_id: UUID,
    wanted: Sequence[tuple[UUID, tuple[int, int, int]]],
    read: Callable[[Sequence[UUID]], Iterable[Observation]],
) -> None:
    """Keep observations that will be asked for: by thread, at a place as ``buffered`` takes it.

    ``read`` returns what waits in threads, in order.
    """
    missing = {thread_id: place for thread_id, place in wanted if place[1] != place[2]}
    for thread_id, place in list(missing.items()):
        kept = _waiting.get((record_id, thread_id))
        if kept is not None and kept[0] == place:
            del missing[thread_id]
    found: dict[UUID, list[Observation]] = {thread_id: [] for thread_id in missing}
    ids = list(missing)
    for start in range(0, len(ids), AT_ONCE):
        for row in read(ids[start : start + AT_ONCE]):
            of, first, last = row.thread_id, row.first_position, row.last_position
            assert of is not None
            assert first is not None
            assert last is not None
            _, observed, written = missing[of]
            if observed < first and last <= written:
                found[of].append(row)
    for thread_id, rows in found.items():
        _waiting.put((record_id, thread_id), (missing[thread_id], tuple(rows)))


_written: Recent[tuple[Line, ...]] = recent(MOST_WRITTEN, lambda lines: 1 + len(lines))


def lines_of(observations: Sequence[UUID], *, epoch: int) -> list[Line]:
    """Return the lines of observations that wait, in order; only erasing changes these."""
    found = {pk: _written.get((pk, epoch)) for pk in observations}
    missing = [pk for pk, lines in found.items() if lines is None]
    if missing:
        read: dict[UUID, list[Line]] = {pk: [] for pk in missing}
        for line in Line.objects.filter(observation__in=missing).order_by("ordinal"):
            read[line.observation_id].append(line)
        found.update({pk: tuple(lines) for pk, lines in read.items()})
    return [line for pk in observations for line in found[pk] or ()]


def wrote(observation_id: UUID, lines: Sequence[Line], *, epoch: int) -> None:
    """Keep the lines of an observation that was just buffered; call it on commit."""
    _written.put((observation_id, epoch), tuple(lines))


_sources: Recent[frozenset[UUID]] = recent(MOST_REFLECTIONS, len)


def sources_of(reflection_id: UUID, *, epoch: int) -> frozenset[UUID]:
    """Return the rows a reflection that waits was made from: they stay as long as it waits."""
    found = _sources.get((reflection_id, epoch))
    if found is None:
        links = ReflectionSource.objects.filter(reflection=reflection_id)
        found = frozenset(links.values_list("observation", flat=True))
        _sources.put((reflection_id, epoch), found)
    return found


def condensed(
    reflection_id: UUID, sources: Iterable[UUID], lines: Sequence[Line], *, epoch: int
) -> None:
    """Keep what a reflection that was just written says, and of what; call it on commit."""
    wrote(reflection_id, lines, epoch=epoch)
    _sources.put((reflection_id, epoch), frozenset(sources))


def forget_everything() -> None:
    """Keep nothing any more, as a process that just started."""
    for store in _STORES:
        store.clear()
