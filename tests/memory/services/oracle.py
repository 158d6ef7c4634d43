"""Recompute what must hold of a thread's memory from the raw tables alone."""

from datetime import date
from itertools import pairwise
from zoneinfo import ZoneInfo

from memory.engine.context import memory_block
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Revision,
)
from memory.services.look import line_value, visible_lines
from memory.tokens import BY_LINE

from .play import seen


def violations(thread_id):
    """Return one sentence for each thing that is wrong; none when all is well."""
    found = []
    for record in MemoryRecord.objects.filter(thread=thread_id):
        positions = list(
            Message.objects.filter(thread=thread_id)
            .order_by("position")
            .values_list("position", flat=True)
        )
        rows = list(
            Observation.objects.filter(record=record, kind="observation").order_by("first_position")
        )
        found += _ranges(rows, positions)
        found += _cursor(record, rows)
        found += _revisions(record)
        found += _lines(record)
        found += _text(record, rows)
        found += _lanes(record)
    return found


def _ranges(rows, positions):
    known = set(positions)
    for row in rows:
        if {row.first_position, row.last_position} - known:
            yield f"The range of {row} ends where no message is."
    for before, after in pairwise(rows):
        if before.last_position >= after.first_position:
            yield f"{before} and {after} cover the same messages."
        between = [p for p in positions if before.last_position < p < after.first_position]
        if between:
            yield f"Messages {between} lie between {before} and {after}."
        if before.since is None and after.since is not None:
            yield f"{after} is shown before {before}."
    if rows and positions and rows[0].first_position != positions[0]:
        yield f"Messages before {rows[0]} were left out."


def _cursor(record, rows):
    cursor = Cursor.objects.filter(record=record).first()
    buffered = max((r.last_position for r in rows), default=0)
    observed = max((r.last_position for r in rows if r.since is not None), default=0)
    stands = (cursor.buffered_through, cursor.observed_through) if cursor else (0, 0)
    if stands != (buffered, observed):
        yield f"The cursor stands at {stands}, the rows at {(buffered, observed)}."


def _sent(record, number):
    """Return the tokens of what a revision shows, written down as the Actor is sent it."""
    lines = [line_value(line) for line in visible_lines(record.pk, number)]
    zone = ZoneInfo(record.resource.time_zone)
    block = memory_block(lines, today=date(2100, 1, 1), tz=zone)
    body = block.partition("<observations>\n")[2].rpartition("\n</observations>")[0]
    return BY_LINE.count(body)


def _revisions(record):
    revisions = list(Revision.objects.filter(record=record).order_by("number"))
    if [r.number for r in revisions] != list(range(1, record.revision + 1)):
        yield f"Revision {record.revision} has the numbers {[r.number for r in revisions]}."
    for before, after in pairwise(revisions):
        if before.tokens_after != after.tokens_before:
            yield f"Tokens after {before} are not those before {after}."
    for row in revisions:
        sent = _sent(record, row.number)
        if abs(sent - row.tokens_after) > max(3, 0.02 * sent):
            yield f"{row} does not count the tokens it left."
    shown = Observation.objects.filter(record=record, kind="reflection", since__isnull=False)
    if shown.count() != record.generation:
        yield f"Generation {record.generation} has {shown.count()} reflections."


def _lines(record):
    for row in Line.objects.filter(observation__record=record).select_related("observation"):
        if row.since != row.observation.since:
            yield f"“{row}” is shown at another revision than its observation."
        if row.until is None:
            continue
        links = ReflectionSource.objects.filter(
            observation=row.observation_id, reflection__since=row.until
        )
        if links.count() != 1:
            yield f"“{row}” went at revision {row.until} for {links.count()} reflections."


def _text(record, rows):
    """Compare what the visible lines say with what the shown observations have seen."""
    covered = [
        position
        for row in rows
        if row.since is not None
        for position in seen(row.lines.values_list("text", flat=True))
    ]
    visible = Line.objects.as_of(record.pk, record.revision).values_list("text", flat=True)
    told = sorted(seen(visible))
    if told != sorted(covered):
        yield f"The visible lines tell of {told}, the observations of {sorted(covered)}."


def _lanes(record):
    lanes = list(Cycle.objects.filter(record=record, status="running").values_list("lane"))
    if len(lanes) != len(set(lanes)):
        yield f"Two cycles run in one lane: {lanes}."
