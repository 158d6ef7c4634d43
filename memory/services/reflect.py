"""Condense the oldest lines: ahead of time (buffered), or at once past the ceiling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import transaction

from memory import reflector
from memory.dispatch import dispatch
from memory.engine import values
from memory.engine.lifecycle import BufferReflection, Reflect, Snapshot, decide
from memory.engine.parsing import BadOutput
from memory.engine.prompts.reflector import reflector_request
from memory.events import CycleFinished, MemoryReflected
from memory.models import Cycle, Line, MemoryRecord, Observation, ReflectionSource, Revision
from memory.models.cycle import REFLECTOR_LANE, CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.publish import publish
from memory.tokens import count

from .activate import replace_sources, revision
from .cycles import (
    FALLBACK_MODEL,
    Resolve,
    costs,
    discard,
    fail,
    kept_alive,
    lane_state,
    logger,
    open_cycle,
    resolve_model,
)
from .look import View, line_value, look
from .observe import request_text

FIRST_LEVEL = 1
LAST_LEVEL = 4


class NotSmaller(ValueError):
    """Say that no attempt made the observations smaller."""


@dataclass(frozen=True)
class Claimed:
    """Hold a claimed reflection: its cycle, the lines it condenses and the rows they are of."""

    cycle: Cycle
    lines: tuple[values.Line, ...]
    sources: tuple[UUID, ...]
    target: int
    model: str
    zone: tzinfo

    @property
    def tokens(self) -> int:
        """Return the tokens of the lines to condense."""
        return sum(line.tokens for line in self.lines)

    def request(self, level: int) -> values.ReflectorRequest:
        """Return the Reflector's request at a level of compression."""
        return reflector_request(self.lines, target_tokens=self.target, level=level, tz=self.zone)


def claim(thread_id: UUID) -> Claimed | None:
    """Claim the reflection that is due, if any and if nobody is at it."""
    with transaction.atomic():
        view = look(thread_id)
        return None if view is None else claim_of(view)


def claim_of(view: View) -> Claimed | None:
    """Claim what is due in a view taken in the same transaction."""
    if _due(view.snapshot(), view) is None:
        return None
    state = lane_state(view.record.pk, REFLECTOR_LANE)
    if not state.open:
        return None
    waiting = Observation.objects.waiting_reflections(view.record.pk).exists()
    due = _due(view.snapshot(reflection_waits=waiting, stalled_at=state.stalled_at), view)
    if due is None:
        return None
    return _open(view, due, failures=state.failures, fallback=state.fallback)


def _due(snapshot: Snapshot, view: View) -> BufferReflection | Reflect | None:
    shown = {line.observation_id for line in view.lines}
    for decision in decide(snapshot, view.options.thresholds()):
        # Rows that an activation still has to show are condensed after it.
        if isinstance(decision, BufferReflection | Reflect) and shown.issuperset(decision.rows):
            return decision
    return None


def _open(
    view: View, due: BufferReflection | Reflect, *, failures: int, fallback: bool
) -> Claimed | None:
    rows = set(due.rows)
    picked = [line for line in view.lines if line.observation_id in rows and not line.pinned]
    draft = Claimed(
        cycle=Cycle(),
        lines=tuple(line_value(line) for line in picked),
        sources=tuple(dict.fromkeys(line.observation_id for line in picked)),
        target=due.target,
        model=FALLBACK_MODEL
        if fallback
        else view.options.reflector_model or settings.MEMORY_MODELS["reflector"],
        zone=view.zone,
    )
    cycle = open_cycle(
        view,
        REFLECTOR_LANE,
        request=request_text(draft.request(FIRST_LEVEL)),
        kind=Cycle.Kind.REFLECT if isinstance(due, Reflect) else Cycle.Kind.BUFFER_REFLECTION,
        trigger="fallback" if fallback else "threshold",
        last_position=view.thread.last_position,
        message_tokens=due.tokens,
        observation_tokens=view.tokens,
        level=FIRST_LEVEL,
        attempt=failures + 1,
    )
    return None if cycle is None else Claimed(**{**vars(draft), "cycle": cycle})


async def run(claimed: Claimed, *, resolve: Resolve = resolve_model) -> bool:
    """Think and commit. Return False when that failed and the lane rests; nothing is raised."""
    cycle = claimed.cycle
    try:
        async with kept_alive(cycle):
            reflected, level = await _best(claimed, resolve)
        await sync_to_async(commit)(claimed, reflected, level)
    except (CycleLost, RecordMoved, CursorMoved) as moved:
        await sync_to_async(discard)(cycle, str(moved))
    except NotSmaller as error:
        await sync_to_async(fail)(cycle, error, retry=False)
        return False
    except Exception as error:  # noqa: BLE001 - whatever fails here must not fail a turn
        logger.info("Cycle %s failed: %s", cycle.pk, error)
        await sync_to_async(fail)(cycle, error)
        return False
    return True


async def _best(claimed: Claimed, resolve: Resolve) -> tuple[reflector.Reflected, int]:
    """Ask at rising levels until the target holds; return the smallest output that is smaller.

    Raises NotSmaller when none is, BadOutput when no output could be read at all.
    """
    best: tuple[int, reflector.Reflected, int] | None = None
    unreadable: BadOutput | None = None
    model = await asyncio.to_thread(resolve, claimed.model)
    for level in range(FIRST_LEVEL, LAST_LEVEL + 1):
        try:
            reflected = await reflector.reflect(
                claimed.request(level), model=model, tz=claimed.zone
            )
        except BadOutput as error:
            unreadable = error
            continue
        tokens = sum(count(line.text) for line in reflected.output.lines)
        if tokens and (best is None or tokens < best[0]):
            best = tokens, reflected, level
        if 0 < tokens < claimed.target:
            break
    if best is None and unreadable is not None:
        raise unreadable
    if best is None or best[0] >= claimed.tokens:
        raise NotSmaller(f"No attempt made these {claimed.tokens} tokens smaller.")
    return best[1], best[2]


def commit(claimed: Claimed, reflected: reflector.Reflected, level: int) -> Observation:
    """Write a reflection, shown at once if so claimed, if the record is as it was.

    Raises CycleLost, RecordMoved or CursorMoved, with nothing written.
    """
    cycle = claimed.cycle
    with transaction.atomic():
        record = MemoryRecord.objects.get(pk=cycle.record_id)
        record.epoch = cycle.epoch
        number = None
        if cycle.kind == Cycle.Kind.REFLECT:
            number = record.advance(generations=1)
        else:
            record.hold()
        cycle.finish(Cycle.Status.DONE, level=level, **costs(reflected.reply))
        _compare(claimed)
        reflection = _write(claimed, reflected.output.lines)
        assert cycle.thread_id is not None
        publish(CycleFinished(thread=cycle.thread_id, record=record.pk, cycle=cycle.pk))
        if number is not None:
            _show(claimed, reflection, number)
        dispatch(cycle.thread_id)
    return reflection


def _compare(claimed: Claimed) -> None:
    """Raise CursorMoved unless all lines claimed are visible and no reflection waits."""
    visible = Line.objects.filter(
        observation__in=claimed.sources, until__isnull=True, pinned=False
    ).count()
    waiting = Observation.objects.waiting_reflections(claimed.cycle.record_id)
    if visible != len(claimed.lines) or waiting.exists():
        raise CursorMoved("These lines were condensed meanwhile.")


def _write(claimed: Claimed, lines: Sequence[values.WrittenLine]) -> Observation:
    cycle = claimed.cycle
    counts = [count(line.text) for line in lines]
    reflection = Observation.objects.create(
        record_id=cycle.record_id,
        thread_id=None,
        kind=Observation.Kind.REFLECTION,
        tokens=sum(counts),
        message_tokens=claimed.tokens,
        cycle=cycle,
    )
    ReflectionSource.objects.bulk_create(
        [ReflectionSource(reflection=reflection, observation_id=pk) for pk in claimed.sources]
    )
    numbers = claimed.request(FIRST_LEVEL).numbers
    Line.objects.bulk_create(
        [
            _line(
                reflection, ordinal, line, tokens, [numbers[n] for n in line.cites if n in numbers]
            )
            for ordinal, (line, tokens) in enumerate(zip(lines, counts, strict=True))
        ]
    )
    return reflection


def _line(
    reflection: Observation,
    ordinal: int,
    line: values.WrittenLine,
    tokens: int,
    cited: Sequence[values.Line],
) -> Line:
    firsts = [source.first_position for source in cited if source.first_position is not None]
    lasts = [source.last_position for source in cited if source.last_position is not None]
    return Line(
        observation=reflection,
        ordinal=ordinal,
        kind=line.kind.value,
        said_at=line.said_at or next((s.said_at for s in cited if s.said_at), None),
        text=line.text,
        tokens=tokens,
        first_position=min(firsts, default=None),
        last_position=max(lasts, default=None),
    )


def _show(claimed: Claimed, reflection: Observation, number: int) -> None:
    assert claimed.cycle.thread_id is not None
    view = look(claimed.cycle.thread_id)
    assert view is not None
    replace_sources(view, reflection, number)
    revision(view, number, Revision.Cause.REFLECT, cycle=claimed.cycle, trigger="ceiling")
    publish(MemoryReflected(thread=view.thread.pk, record=view.record.pk, revision=number))
