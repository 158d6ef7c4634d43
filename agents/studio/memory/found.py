"""Answer where something is: in what is remembered, in what waits, was, or was said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from uuid import UUID

from django.db.models import F, Q

from agents import words
from agents.lines import SUB_POINT, LineShown
from agents.shared import threads_in
from agents.studio.memory.asked import Asked
from agents.studio.memory.reading import Reading
from agents.studio.memory.rows import shown
from memory.models import Line, Message, Observation, Thread, holding

MOST = 40
AROUND = 110
FILLERS = frozenset(
    {"a", "about", "an", "and", "are", "at", "did", "do", "does", "for", "has", "have", "how"}
    | {"in", "is", "it", "me", "my", "of", "on", "or", "said", "say", "that", "the", "their"}
    | {"they", "this", "to", "us", "was", "we", "were", "what", "when", "where", "which", "who"}
    | {"why", "with", "you", "your"}
)

Segments = tuple[tuple[bool, str], ...]


@dataclass(frozen=True)
class Hit:
    """Show one place where the words are; ``segments`` mark them."""

    href: str
    place: str
    segments: Segments
    line: LineShown | None = None
    drawer: str = ""


@dataclass(frozen=True)
class Shelf:
    """Show the hits of one kind, newest first; ``more`` tells that there are others."""

    name: str
    hits: tuple[Hit, ...]
    more: bool


@dataclass(frozen=True)
class Answer:
    """Show what was found, by shelf, and which words were looked for."""

    asked: str
    wanted: tuple[str, ...]
    shelves: tuple[Shelf, ...]

    @property
    def count(self) -> int:
        """Return how many places are shown."""
        return sum(len(shelf.hits) for shelf in self.shelves)


def answer_of(reading: Reading) -> Answer | None:
    """Return where the words asked for are; None when nothing is asked."""
    asked = reading.asked.q
    wanted = wanted_in(asked)
    if not wanted:
        return None
    shelves = [*_lines(reading, wanted), _messages(reading, wanted)]
    return Answer(asked, wanted, tuple(shelf for shelf in shelves if shelf.hits))


def wanted_in(question: str) -> tuple[str, ...]:
    """Return the words that matter in a question; all of them when none does."""
    said = re.findall(r"[^\s?!.,;:\"“”«»()]+", question)
    telling = [word for word in said if word.lower() not in FILLERS]
    return tuple(dict.fromkeys(telling or said))[:8]


def _holding(wanted: Sequence[str]) -> Q:
    return reduce(and_, (holding("text", word) for word in wanted))


def _lines(reading: Reading, wanted: Sequence[str]) -> Iterator[Shelf]:
    if reading.record is None:
        return
    rows = Line.objects.filter(_holding(wanted), observation__record=reading.record)
    rows = rows.annotate(of_thread=F("observation__thread"), of_kind=F("observation__kind"))
    now = rows.filter(since__isnull=False, until__isnull=True).order_by("-since", "ordinal")
    waiting = rows.filter(
        since__isnull=True, observation__kind=Observation.Kind.OBSERVATION
    ).order_by("-observation__first_position", "ordinal")
    past = rows.filter(until__isnull=False).order_by("-until", "ordinal")
    for name, found in (
        ("Remembered now", now),
        ("Buffered", waiting),
        ("Earlier revisions", past),
    ):
        some = list(found[: MOST + 1])
        hits = [_line(reading, line, wanted) for line in some[:MOST]]
        yield Shelf(name, tuple(hits), len(some) > MOST)


def _line(reading: Reading, line: Line, wanted: Sequence[str]) -> Hit:
    return Hit(
        href=f"{_address(line)}#line-{line.pk}"
        if line.since
        else f"/memory/lines/{line.pk}/sources",
        place=_place(line),
        segments=marked(line.text.removeprefix(SUB_POINT), wanted),
        line=shown(reading, line),
        drawer="" if line.since else "1",
    )


def _address(line: Line) -> str:
    return Asked(rev=line.until - 1 if line.until else None).link()


def _place(line: Line) -> str:
    if line.since is None:
        return "not visible to the agent yet"
    if line.until is None:
        return f"since revision {line.since}"
    last = line.until - 1
    return f"revision {last}" if line.since == last else f"revisions {line.since}–{last}"


def _messages(reading: Reading, wanted: Sequence[str]) -> Shelf:
    titles = _searched(reading)
    found = Message.objects.filter(_holding(wanted), thread__in=list(titles))
    rows = list(found.order_by("-created_at", "-position")[: MOST + 1])
    hits = [_message(reading, row, titles[row.thread_id], wanted) for row in rows[:MOST]]
    return Shelf("Messages", tuple(hits), len(rows) > MOST)


def _searched(reading: Reading) -> dict[UUID, str]:
    """Return the conversations whose messages the memory is of; the last active ones of many."""
    if reading.record is None or not reading.scene.is_shared:
        return {reading.thread.pk: str(reading.thread)}
    recent: Sequence[Thread] = list(threads_in(reading.record).order_by("-last_active_at")[:50])
    return {thread.pk: str(thread) for thread in recent}


def _message(reading: Reading, row: Message, title: str, wanted: Sequence[str]) -> Hit:
    by = "User" if row.kind == Message.Kind.REQUEST else "Agent"
    at = row.created_at.astimezone(reading.zone)
    of = f" in {title}" if row.thread_id != reading.thread.pk else ""
    return Hit(
        href=f"/chat/{row.thread_id}/?from={row.position}#message-{row.position}",
        place=f"{by}, message {row.position}{of}, {words.day(at)} {words.clock(at)}",
        segments=marked(_excerpt(row.text, wanted), wanted),
    )


def _excerpt(text: str, wanted: Sequence[str]) -> str:
    lower = text.lower()
    at = min((i for i in (lower.find(word.lower()) for word in wanted) if i >= 0), default=0)
    start = max(0, at - AROUND)
    end = at + 2 * AROUND
    cut = text[start:end].strip()
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"


def marked(text: str, wanted: Sequence[str]) -> Segments:
    """Return a text in parts, those that are wanted words marked; joined they are the text."""
    pattern = "|".join(re.escape(word) for word in sorted(wanted, key=len, reverse=True))
    if not pattern:
        return ((False, text),)
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    return tuple((i % 2 == 1, part) for i, part in enumerate(parts) if part)
