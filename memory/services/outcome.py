"""Write down what an Observer made of threads: cycles ended, cursors moved, rows inserted.

One thread takes as many statements as several: a call that serves a dozen short conversations is
written at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, Case, Q, TextField, Value, When
from django.db.models.functions import Now

from memory.ask import Reply
from memory.engine import values
from memory.models import Cursor, Cycle, Line, Observation
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved
from memory.tokens import count_line

from . import kept
from .claims import Share
from .cycles import costs
from .think import Thought

FREE: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, "cost": None}


@dataclass(frozen=True)
class Outcome:
    """Hold what is to be written for one thread."""

    share: Share
    reply: Reply
    of_call: str
    thought: Thought
    numbers: Mapping[int, int]

    @property
    def cycle(self) -> Cycle:
        """Return the cycle that ends."""
        return self.share.cycle

    @property
    def output(self) -> values.ObserverOutput:
        """Return what the Observer said."""
        assert self.thought.output is not None
        return self.thought.output

    @property
    def note(self) -> str:
        """Return what else is worth knowing of the cycle."""
        return " ".join(filter(None, (self.of_call, self.thought.note)))


def finish(outcomes: Sequence[Outcome]) -> list[Observation]:
    """End the cycles of one call, move their cursors and write the rows; nobody sees them yet.

    Raises CycleLost or CursorMoved when one of them came too late; then nothing may be kept of
    the transaction around.
    """
    first, *others = outcomes
    cost = costs(first.cycle, first.reply)
    first.cycle.finish(Cycle.Status.DONE, note=first.note, **cost)
    if others:
        # What the call cost is told once, on the cycle of its first thread.
        _end(others, {**cost, **FREE})
    _move([outcome.share for outcome in outcomes])
    return _insert(outcomes)


def _end(outcomes: Sequence[Outcome], cost: Mapping[str, Any]) -> None:
    mine = [Q(pk=outcome.cycle.pk, owner=outcome.cycle.owner) for outcome in outcomes]
    notes = [When(pk=each.cycle.pk, then=Value(each.note)) for each in outcomes]
    ended = (
        Cycle.objects.running()
        .filter(Q(*mine, _connector=Q.OR))
        .update(
            status=Cycle.Status.DONE,
            finished_at=Now(),
            note=Case(*notes, output_field=TextField()),
            **cost,
        )
    )
    if ended != len(outcomes):
        raise CycleLost("The lease of one of these cycles lapsed, or it was taken over.")


def _move(shares: Sequence[Share]) -> None:
    """Move cursors over ranges, from where they were at the claim. Raises CursorMoved."""
    # A thread has its cursor from its first observation on.
    begun = [_place(share) for share in shares if not share.after]
    if begun:
        Cursor.objects.bulk_create([Cursor(**place) for place in begun], ignore_conflicts=True)
    here = [Q(**_place(share), buffered_through=share.after) for share in shares]
    ends = [When(thread=s.cycle.thread_id, then=Value(s.cycle.last_position)) for s in shares]
    moved = Cursor.objects.filter(Q(*here, _connector=Q.OR)).update(
        buffered_through=Case(*ends, output_field=BigIntegerField())
    )
    if moved != len(shares):
        raise CursorMoved("These messages were observed meanwhile.")


def _place(share: Share) -> dict[str, Any]:
    return {"record_id": share.cycle.record_id, "thread_id": share.cycle.thread_id}


def _insert(outcomes: Sequence[Outcome]) -> list[Observation]:
    rows = [_rows(outcome) for outcome in outcomes]
    observations = [observation for observation, _ in rows]
    Observation.objects.bulk_create(observations)
    Line.objects.bulk_create([line for _, lines in rows for line in lines])
    transaction.on_commit(lambda: _keep(outcomes, rows), robust=True)
    return observations


def _keep(outcomes: Sequence[Outcome], rows: Sequence[tuple[Observation, Sequence[Line]]]) -> None:
    for outcome, (observation, lines) in zip(outcomes, rows, strict=True):
        kept.wrote(observation.pk, lines, epoch=outcome.cycle.epoch)


def _rows(outcome: Outcome) -> tuple[Observation, list[Line]]:
    cycle, output = outcome.cycle, outcome.output
    counts = [count_line(line.kind, line.text, line.said_at) for line in output.lines]
    observation = Observation(
        record_id=cycle.record_id,
        thread_id=cycle.thread_id,
        kind=Observation.Kind.OBSERVATION,
        first_position=cycle.first_position,
        last_position=cycle.last_position,
        message_tokens=cycle.message_tokens,
        tokens=sum(counts),
        current_task=output.current_task,
        suggested_response=output.suggested_response,
        thread_title=output.thread_title[:200],
        extracted=outcome.thought.extracted,
        cycle_id=cycle.pk,
    )
    return observation, [
        _line(observation, ordinal, line, tokens, outcome.numbers)
        for ordinal, (line, tokens) in enumerate(zip(output.lines, counts, strict=True))
    ]


def _line(
    observation: Observation,
    ordinal: int,
    line: values.WrittenLine,
    tokens: int,
    numbers: Mapping[int, int],
) -> Line:
    cited = [numbers[number] for number in line.cites if number in numbers]
    return Line(
        observation=observation,
        ordinal=ordinal,
        kind=line.kind.value,
        said_at=line.said_at,
        text=line.text,
        tokens=tokens,
        first_position=min(cited, default=observation.first_position),
        last_position=max(cited, default=observation.last_position),
    )
