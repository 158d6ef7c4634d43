"""Make the list of revisions: by generation, with cause, author and change, and their curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from agents import words
from agents.markers import state_and_words
from agents.studio.memory.reading import Point, Reading
from memory.models import Cycle, Revision, Thread

CAUSES = {
    Revision.Cause.ACTIVATE: "Activated",
    Revision.Cause.OBSERVE: "Observed",
    Revision.Cause.REFLECT: "Reflected",
    Revision.Cause.EDIT: "Edited",
    Revision.Cause.NOTE: "Noted",
    Revision.Cause.PIN: "Pinned or unpinned",
    Revision.Cause.FORGET: "Forgotten",
    Revision.Cause.RESTORE: "Restored",
    Revision.Cause.CLEAR: "Cleared",
    Revision.Cause.ERASE: "Erased",
    Revision.Cause.CONFIG: "Options changed",
    Revision.Cause.SCOPE: "Scope changed",
    Revision.Cause.IMPORT: "Imported",
    Revision.Cause.FORK: "Forked",
}
#: What `history.undo` can take back by itself.
UNDOABLE = frozenset({"edit", "note", "pin", "forget", "restore"})
MOST_CYCLES = 30
MOST_POINTS = 120
WIDTH, HEIGHT = 240, 36


@dataclass(frozen=True)
class Entry:
    """Show one revision, or a cycle that made none."""

    key: str
    link: str
    words: str
    at: datetime
    clock: str
    number: int = 0
    by: str = ""
    change: str = ""
    current: bool = False
    state: str = ""
    cause: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Generation:
    """Show the revisions between two reflections."""

    number: int
    tokens: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Curve:
    """Show the tokens of all revisions as a line; places are those of an SVG."""

    points: str
    marks: tuple[tuple[str, str], ...]
    here: str
    spoken: str
    highest: str


@dataclass(frozen=True)
class Listed:
    """Show the list: generations, what can be filtered by, and what is left to show."""

    generations: tuple[Generation, ...]
    curve: Curve | None
    causes: tuple[tuple[str, str], ...]
    authors: tuple[str, ...]
    threads: tuple[tuple[str, str], ...]
    total: int
    more: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    filtered: bool = False


def listed(reading: Reading) -> Listed:
    """Return the revisions that the page lists."""
    asked = reading.asked
    rows = list(_rows(reading)[: asked.more + 1])
    shown, is_more = rows[: asked.more], len(rows) > asked.more
    entries = [_revision(reading, row) for row in shown] + _cycles(reading, shown, is_more)
    causes = {point.cause for point in reading.outline}
    return Listed(
        generations=tuple(_generations(reading, sorted(entries, key=_newest_first))),
        curve=curve_of(reading.outline, reading.number),
        causes=tuple((str(c), name) for c, name in CAUSES.items() if c in causes),
        authors=_authors(reading),
        threads=_threads(reading),
        total=len(reading.outline),
        more=asked.link(more=asked.more + 60) if is_more else "",
        fields=asked.pairs("cause", "author", "of", "more", "edit"),
        filtered=bool(asked.cause or asked.author or asked.of),
    )


def _rows(reading: Reading) -> QuerySet[Revision]:
    rows = Revision.objects.filter(record=reading.record, number__lte=reading.latest)
    asked = reading.asked
    if asked.cause:
        rows = rows.filter(cause=asked.cause)
    if asked.author:
        rows = rows.filter(author__username=asked.author)
    if asked.of:
        rows = rows.filter(thread=asked.of)
    return rows.select_related("author", "thread").order_by("-number")


def _newest_first(entry: Entry) -> tuple[float, int]:
    return (-entry.at.timestamp(), -entry.number)


def _revision(reading: Reading, row: Revision) -> Entry:
    return Entry(
        key=f"rev-{row.number}",
        link=reading.asked.link(rev=row.number),
        words=CAUSES[Revision.Cause(row.cause)],
        at=row.created_at,
        clock=_clock(reading, row.created_at),
        number=row.number,
        by=row.author.get_username() if row.author else "",
        change=signed(row.tokens_after - row.tokens_before),
        current=row.number == reading.number and reading.cycle is None,
        cause=row.cause,
        reason=row.reason,
    )


def _clock(reading: Reading, at: datetime) -> str:
    local = at.astimezone(reading.zone)
    today = reading.now.astimezone(reading.zone).date()
    same_day = local.date() == today
    return words.clock(local) if same_day else f"{local.day} {local:%b} {words.clock(local)}"


def signed(change: int) -> str:
    """Return a change of tokens with its sign."""
    return f"{'+' if change >= 0 else '−'}{words.tokens(abs(change))}"


def _cycles(reading: Reading, shown: Sequence[Revision], is_more: bool) -> list[Entry]:
    """Return the cycles that made no revision, among the revisions shown."""
    asked = reading.asked
    if reading.record is None or asked.cause or asked.author:
        return []
    wrong = Cycle.objects.filter(record=reading.record, status__in=Cycle.FRUITLESS)
    if is_more:
        wrong = wrong.filter(started_at__gte=shown[-1].created_at)
    if asked.of:
        wrong = wrong.filter(thread=asked.of)
    return [_cycle(reading, cycle) for cycle in wrong.order_by("-started_at")[:MOST_CYCLES]]


def _cycle(reading: Reading, cycle: Cycle) -> Entry:
    state, text = state_and_words(cycle, None)
    return Entry(
        key=f"cycle-{cycle.pk}",
        link=reading.asked.link(rev=reading.asked.rev, cycle=cycle.pk),
        words=text,
        at=cycle.finished_at or cycle.started_at,
        clock=_clock(reading, cycle.finished_at or cycle.started_at),
        current=reading.asked.cycle == cycle.pk,
        state=state,
    )


def _generations(reading: Reading, entries: Sequence[Entry]) -> Iterator[Generation]:
    """Put entries under the generation they are of; a cycle is of the revision after it."""
    by_number: dict[int, list[Entry]] = {}
    now = reading.generation(reading.latest)
    for entry in entries:
        if entry.number:
            now = reading.generation(entry.number)
        by_number.setdefault(now, []).append(entry)
    sizes = {reading.generation(point.number): point.tokens for point in reading.outline}
    for number, found in by_number.items():
        yield Generation(number, words.tokens(sizes.get(number, 0)), tuple(found))


def _authors(reading: Reading) -> tuple[str, ...]:
    if reading.record is None:
        return ()
    writers = Revision.objects.filter(record=reading.record, author__isnull=False)
    users = get_user_model()._default_manager.filter(pk__in=writers.values("author"))
    return tuple(users.order_by("username").values_list("username", flat=True))


def _threads(reading: Reading) -> tuple[tuple[str, str], ...]:
    if reading.record is None or not reading.scene.is_shared:
        return ()
    named = Revision.objects.filter(record=reading.record, thread__isnull=False)
    found: Any = Thread.objects.filter(pk__in=named.values("thread")).order_by("-last_active_at")
    return tuple((str(thread.pk), str(thread)) for thread in found[:50])


def curve_of(outline: Sequence[Point], number: int) -> Curve | None:
    """Return the curve of the tokens; None where there is none to draw."""
    if len(outline) < 2:
        return None
    highest = max(point.tokens for point in outline) or 1
    last = len(outline) - 1

    def place(at: int) -> tuple[str, str]:
        y = HEIGHT - 2 - (HEIGHT - 6) * outline[at].tokens / highest
        return f"{WIDTH * at / last:.1f}", f"{y:.1f}"

    step = max(1, len(outline) // MOST_POINTS)
    reflected = [i for i, point in enumerate(outline) if point.cause == Revision.Cause.REFLECT]
    drawn = sorted({*range(0, len(outline), step), *reflected, *_before(reflected), last})
    here = next((i for i, point in enumerate(outline) if point.number == number), None)
    return Curve(
        points=" ".join(",".join(place(at)) for at in drawn),
        marks=tuple(place(at) for at in reflected),
        here=place(here)[0] if here is not None else "",
        spoken=_spoken(outline, len(reflected)),
        highest=words.tokens(highest),
    )


def _before(reflected: Sequence[int]) -> list[int]:
    return [at - 1 for at in reflected if at]


def _spoken(outline: Sequence[Point], reflected: int) -> str:
    first, last = words.spoken(outline[0].tokens), words.spoken(outline[-1].tokens)
    most = words.spoken(max(point.tokens for point in outline))
    times = "once" if reflected == 1 else f"{reflected} times"
    condensed = f", condensed {times}" if reflected else ""
    return (
        f"Tokens of memory over {len(outline)} revisions: from {first} to {last}, "
        f"at most {most}{condensed}."
    )
