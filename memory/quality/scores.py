"""Score memories: what they keep, whether they print dates, and whether they cite rightly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from statistics import mean, median_low

from memory.quality.dates import without
from memory.quality.index import Entry, Index
from memory.quality.questions import answer_key, answerable, asked_days
from memory.quality.size import size_of_lines, size_of_raw
from memory.quality.spans import Span, day
from memory.quality.values import Remembered
from memory.quality.words import stems

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Scores:
    """Hold the measures of some memories; shares are per cent, None where nothing was to measure.

    ``support`` (SUP): the share of the answers that lines resting on the evidence still hold;
    for a question about time, whether such a line gives the right days. ``explicit`` (X): the
    questions about time whose days are printed there, with nothing left to reckon.
    ``grounded`` (GRD): the share of what lines say that the turns they cite say too.
    ``cited``: how many turns a line cites, the median. Sizes are in estimated tokens.
    """

    support: float | None
    explicit: float | None
    grounded: float | None
    cited: int | None
    questions: int
    dated: int
    lines: int
    raw_tokens: int
    memory_tokens: int

    @property
    def ratio(self) -> float | None:
        """Return how many times smaller the memories are than their conversations."""
        return self.raw_tokens / self.memory_tokens if self.memory_tokens else None


def score(conversations: Sequence[Remembered]) -> Scores:
    """Return the scores of all conversations together; each question counts the same."""
    found = _Found()
    for remembered in conversations:
        _ask(Index(remembered), found)
        found.raw_tokens += raw_size(remembered)
        found.memory_tokens += memory_size(remembered)
    return Scores(
        support=_per_cent(found.support),
        explicit=_per_cent(found.explicit),
        grounded=_per_cent(found.grounded),
        cited=median_low(found.cited) if found.cited else None,
        questions=len(found.support),
        dated=len(found.explicit),
        lines=len(found.cited),
        raw_tokens=found.raw_tokens,
        memory_tokens=found.memory_tokens,
    )


def raw_size(remembered: Remembered) -> int:
    """Return the estimated tokens of the whole conversation."""
    said = [f"{turn.speaker}: {turn.text}" for turn in remembered.turns]
    return size_of_raw(said, _days((turn.session, turn.date) for turn in remembered.turns))


def memory_size(remembered: Remembered) -> int:
    """Return the estimated tokens of the lines under a heading for each day of each sitting."""
    texts = [line.text for line in remembered.lines]
    sittings = ((remembered.session_of(line.sources), line.date) for line in remembered.lines)
    return size_of_lines(texts, _days(sittings))


@dataclass
class _Found:
    """Collect what is found, question by question and line by line."""

    support: list[float] = field(default_factory=list)
    explicit: list[float] = field(default_factory=list)
    grounded: list[float] = field(default_factory=list)
    cited: list[int] = field(default_factory=list)
    raw_tokens: int = 0
    memory_tokens: int = 0


def _ask(index: Index, found: _Found) -> None:
    for question in filter(answerable, index.remembered.questions):
        asked = frozenset(stems(question.text)) - index.names
        lines = index.deriving(question.evidence, asked)
        wanted = asked_days(question)
        if wanted is not None:
            found.support.append(float(any(_tells(entry, wanted) for entry in lines)))
            found.explicit.append(float(any(_prints(entry, wanted) for entry in lines)))
        elif key := answer_key(question, index.names):
            kept = frozenset().union(*(entry.stems for entry in lines))
            found.support.append(len(key & kept) / len(key))
    found.grounded += _groundings(index)
    found.cited += [len(line.sources) for line in index.remembered.lines]


def _tells(entry: Entry, wanted: Span) -> bool:
    """Tell whether a line gives the days, by its heading if it says nothing about time."""
    spans = [mention.span for mention in entry.mentions] or [day(entry.line.date)]
    return any(span.tells(wanted) for span in spans)


def _prints(entry: Entry, wanted: Span) -> bool:
    """Tell whether a reader finds the days there without reckoning."""
    if not entry.mentions:
        return _tells(entry, wanted)
    return any(
        mention.span.tells(wanted) and (not mention.relative or _DIGIT.search(mention.phrase))
        for mention in entry.mentions
    )


def _groundings(index: Index) -> Iterator[float]:
    """Yield the share of each citing line's stems that its turns hold, dates and names aside."""
    for entry in index.entries:
        said = without(entry.line.text, entry.mentions)
        told = {s for s in stems(said) if s not in index.names and not s.isdigit()}
        if entry.sources and told:
            sources = (index.said.get(source, frozenset()) for source in entry.sources)
            yield len(told & frozenset().union(*sources)) / len(told)


def _days(sittings: Iterator[tuple[str, date]]) -> list[date]:
    return [day for _, day in set(sittings)]


def _per_cent(shares: Sequence[float]) -> float | None:
    return 100 * mean(shares) if shares else None
