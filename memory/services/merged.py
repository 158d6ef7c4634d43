"""Find which lines each line of a reflection stands for, and which it dropped.

The Reflector names the lines each of its own was made from. Its reply is kept, so what it named
can be read again for as long as it is; where it is gone, or says something else than was
stored, the messages that lines rest on have to do: those within a line's range count as its.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID

from django.db.models import F

from memory.engine.parsing import BadOutput, parse_reflector
from memory.models import Blob, Line, Observation, ReflectionSource


@dataclass(frozen=True)
class Merged:
    """Hold what a reflection made of the lines whose place it took.

    ``parents`` are by the id of each of its lines the lines that one stands for, in order;
    ``dropped`` the lines none of them stands for. ``exact`` tells whether the Reflector named
    them.
    """

    reflection: Observation
    before: tuple[Line, ...]
    lines: tuple[Line, ...]
    parents: Mapping[UUID, tuple[Line, ...]]
    exact: bool

    @property
    def dropped(self) -> list[Line]:
        """Return the lines that no line of the reflection stands for."""
        kept = {line.pk for lines in self.parents.values() for line in lines}
        return [line for line in self.before if line.pk not in kept]


def merged(reflections: Iterable[Observation]) -> list[Merged]:
    """Return what shown reflections, with their cycles, made of lines; in four statements."""
    shown = [each for each in reflections if each.since is not None]
    if not shown:
        return []
    sources = _sources(shown)
    before = _by_observation({pk for found in sources.values() for pk in found})
    written = _by_observation({each.pk for each in shown}, replaces__isnull=True)
    replies = _replies(shown)
    return [
        _merged(
            each,
            [line for pk in sources[each.pk] for line in before[pk] if _ended_by(line, each)],
            written[each.pk],
            replies.get(each.cycle.reply_hash, "") if each.cycle else "",
        )
        for each in shown
    ]


def _sources(reflections: Sequence[Observation]) -> dict[UUID, list[UUID]]:
    links = ReflectionSource.objects.filter(reflection__in=reflections).order_by(
        "observation__place",
        F("observation__thread_id").asc(nulls_first=True),
        F("observation__first_position").asc(nulls_first=True),
        "observation",
    )
    found: dict[UUID, list[UUID]] = defaultdict(list)
    for reflection, source in links.values_list("reflection", "observation"):
        found[reflection].append(source)
    return found


def _by_observation(observations: set[UUID], **only: object) -> dict[UUID, list[Line]]:
    rows = Line.objects.filter(observation__in=observations, since__isnull=False, **only)
    found: dict[UUID, list[Line]] = defaultdict(list)
    for line in rows.select_related("observation").order_by("ordinal", "id"):
        found[line.observation_id].append(line)
    return found


def _replies(reflections: Sequence[Observation]) -> dict[str, str]:
    hashes = {each.cycle.reply_hash for each in reflections if each.cycle}
    return dict(Blob.objects.filter(hash__in=hashes - {""}).values_list("hash", "text"))


def _ended_by(line: Line, reflection: Observation) -> bool:
    return line.until == reflection.since


def _merged(
    reflection: Observation, before: Sequence[Line], lines: Sequence[Line], reply: str
) -> Merged:
    named = _named(before, lines, reply)
    parents = named if named is not None else {each.pk: _within(each, before) for each in lines}
    return Merged(reflection, tuple(before), tuple(lines), parents, named is not None)


def _named(
    before: Sequence[Line], lines: Sequence[Line], reply: str
) -> dict[UUID, tuple[Line, ...]] | None:
    """Return what the reply names, None when it is not the one these lines were stored from."""
    if not reply:
        return None
    try:
        output = parse_reflector(reply, tz=UTC, known=range(1, len(before) + 1))
    except BadOutput:
        return None
    if [line.text for line in output.lines] != [line.text for line in lines]:
        return None
    return {
        line.pk: tuple(before[n - 1] for n in sorted(set(said.cites)) if 0 < n <= len(before))
        for line, said in zip(lines, output.lines, strict=True)
    }


def _within(line: Line, before: Sequence[Line]) -> tuple[Line, ...]:
    if line.first_position is None or line.last_position is None:
        return ()
    first, last = line.first_position, line.last_position
    return tuple(
        each
        for each in before
        if each.first_position is not None
        and each.last_position is not None
        and first <= each.first_position
        and each.last_position <= last
    )
