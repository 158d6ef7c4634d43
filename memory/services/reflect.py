"""Condense the oldest lines: ahead of time (buffered), or at once past the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction

from memory import hooks, phases, reflector, telemetry
from memory.config import MemoryOptions
from memory.dispatch import dispatch
from memory.engine import values
from memory.engine.lifecycle import BufferReflection, Reflect
from memory.engine.on_demand import MANUAL
from memory.engine.parsing import BadOutput
from memory.engine.prompts.reflector import last_level, reflector_request, start_level
from memory.events import MemoryReflected
from memory.hooks import HookFailed, Occasion
from memory.llm import Available
from memory.models import Cycle, Line, MemoryRecord, Observation, ReflectionSource, Revision
from memory.models.cycle import REFLECTOR_LANE, CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.publish import publish
from memory.tokens import count_line

from . import kept
from .activate import replace_sources, revision
from .claims import request_text
from .cycles import (
    Lane,
    LaneTaken,
    Resolve,
    costs,
    discard,
    fail,
    kept_alive,
    lane_of,
    logger,
    open_cycle,
    publish_done,
    resolve_model,
)
from .look import View, line_value, look
from .prepare import due as due_in
from .think import choose, usage_of


class NotSmaller(ValueError):
    """Say that no attempt made the observations smaller."""


@dataclass(frozen=True)
class Claimed:
    """Hold a claimed reflection: its cycle, the lines it condenses and the rows they are of.

    ``pinned`` are the lines that stay beside the result; ``focus`` is what a person asks it to
    mind, None when nobody asked.
    """

    cycle: Cycle
    lines: tuple[values.Line, ...]
    pinned: tuple[values.Line, ...]
    sources: tuple[UUID, ...]
    target: int
    options: MemoryOptions
    zone: tzinfo
    actor_model: str
    focus: str | None = None
    fallback: bool = False

    @property
    def tokens(self) -> int:
        """Return the tokens of the lines to condense."""
        return sum(line.tokens for line in self.lines)

    @property
    def first_level(self) -> int:
        """Return the level to begin at when the model is not known yet."""
        return start_level("", manual=self.focus is not None)

    def request(self, level: int) -> values.ReflectorRequest:
        """Return the Reflector's request at a level of compression."""
        return reflector_request(
            self.lines,
            target_tokens=self.target,
            level=level,
            tz=self.zone,
            focus=self.focus or "",
            pinned=self.pinned,
            instruction=self.options.reflection_instruction,
        )


def claim(thread_id: UUID) -> Claimed | None:
    """Claim the reflection that is due, if any and if nobody is at it."""
    with transaction.atomic():
        view = look(thread_id, lanes=True)
        return None if view is None else claim_of(view)


def claim_of(view: View) -> Claimed | None:
    """Claim what is due in a view taken with its lanes in the same transaction."""
    lane = lane_of(view.reflector)
    if not lane.open:
        return None
    due = _due(view, stalled_at=lane.stalled_at)
    return None if due is None else _open(view, due, lane)


def _due(view: View, *, stalled_at: int | None) -> BufferReflection | Reflect | None:
    shown = {line.observation_id for line in view.lines}
    for decision in due_in(view, stalled_at=stalled_at):
        # Rows that an activation still has to show are condensed after it.
        if isinstance(decision, BufferReflection | Reflect) and shown.issuperset(decision.rows):
            return decision
    return None


def claim_now(view: View, *, focus: str = "") -> Claimed | None:
    """Claim a reflection of all lines that may be condensed, whatever their size.

    For a person who asks for it, minding ``focus``. Returns None when there is nothing to
    condense. Raises LaneTaken while another reflection is at work.
    """
    rows = view.snapshot().rows
    if not rows:
        return None
    lane = lane_of(view.reflector)
    if lane.busy:
        raise LaneTaken
    tokens = sum(row.tokens for row in rows)
    due = Reflect(tuple(row.id for row in rows), tokens, view.options.thresholds().reflect)
    claimed = _open(view, due, replace(lane, failures=0), focus=focus)
    if claimed is None:
        raise LaneTaken
    return claimed


def _open(
    view: View, due: BufferReflection | Reflect, lane: Lane, *, focus: str | None = None
) -> Claimed | None:
    rows = set(due.rows)
    picked = [line for line in view.lines if line.observation_id in rows and not line.pinned]
    draft = Claimed(
        cycle=Cycle(),
        lines=tuple(line_value(line) for line in picked),
        pinned=tuple(line_value(line) for line in view.lines if line.pinned),
        sources=tuple(dict.fromkeys(line.observation_id for line in picked)),
        target=due.target,
        options=view.options,
        zone=view.zone,
        actor_model=view.actor_model,
        focus=focus,
        fallback=lane.fallback,
    )
    usual = "threshold" if focus is None else MANUAL
    try:
        cycle = open_cycle(
            view,
            REFLECTOR_LANE,
            request=request_text(draft.request(draft.first_level)),
            lapsed=lane.lapsed,
            thread_id=view.thread.pk,
            kind=Cycle.Kind.REFLECT if isinstance(due, Reflect) else Cycle.Kind.BUFFER_REFLECTION,
            trigger="fallback" if lane.fallback else usual,
            last_position=view.thread.last_position,
            message_tokens=due.tokens,
            observation_tokens=view.tokens,
            level=draft.first_level,
            attempt=lane.failures + 1,
        )
    except LaneTaken:
        return None
    return replace(draft, cycle=cycle)


async def run(claimed: Claimed, *, resolve: Resolve = resolve_model) -> bool:
    """Think and commit. Return False when the lane is to rest after it; nothing is raised."""
    cycle = claimed.cycle
    with telemetry.working("cycle", [cycle.pk], thread=cycle.thread_id, name=cycle.kind):
        return await _run(claimed, resolve)


async def _run(claimed: Claimed, resolve: Resolve) -> bool:
    cycle = claimed.cycle
    try:
        async with kept_alive(cycle):
            best = await _think(claimed, resolve)
        await sync_to_async(commit)(
            claimed, best.reflected, best.level, asked=best.asked, note=best.note
        )
    except (CycleLost, RecordMoved) as moved:
        await sync_to_async(discard)(cycle, str(moved))
    except CursorMoved as moved:
        # Somebody else has condensed these: what is left is decided when there is news.
        await sync_to_async(discard)(cycle, str(moved))
        return False
    except NotSmaller as error:
        await sync_to_async(fail)(cycle, error, retry=False)
        return False
    except Exception as error:  # noqa: BLE001 - whatever fails here must not fail a turn
        logger.info("Cycle %s failed: %s", cycle.pk, error)
        await sync_to_async(fail)(cycle, error)
        return False
    return True


@dataclass(frozen=True)
class _Best:
    """Hold the smallest output so far, its size, and at which level by which request."""

    reflected: reflector.Reflected
    asked: values.ReflectorRequest
    tokens: int
    level: int
    note: str


async def _think(claimed: Claimed, resolve: Resolve) -> _Best:
    cycle, told = claimed.cycle, hooks.configured()
    lines = await told.transform("before_reflection", claimed.lines)
    claimed = replace(claimed, lines=tuple(lines))
    occasion = Occasion(cycle.thread_id, cycle.record.resource_id, cycle.trigger)
    async with told.reflecting(occasion) as work:
        chosen = await choose(
            claimed.options,
            "reflector",
            claimed.actor_model,
            claimed.tokens,
            resolve,
            fallback=claimed.fallback,
        )
        best = await _best(claimed, chosen)
        work.usage = usage_of(best.reflected.reply)
        output = await told.transform("after_reflection", best.reflected.output)
        if not output.lines:
            raise HookFailed("The hook after_reflection left no lines; at least one must stay.")
        return replace(best, reflected=replace(best.reflected, output=output))


async def _best(claimed: Claimed, chosen: Available) -> _Best:
    """Ask at rising levels until the target holds; return the smallest output that is smaller.

    Raises NotSmaller when none is, BadOutput when no output could be read at all.
    """
    best: _Best | None = None
    unreadable: BadOutput | None = None
    first = start_level(chosen.name, manual=claimed.focus is not None)
    settings = phases.model_settings(claimed.options, "reflector", chosen.model)
    for level in range(first, last_level(first) + 1):
        request = claimed.request(level)
        try:
            reflected = await reflector.reflect(
                request, model=chosen.model, tz=claimed.zone, settings=settings
            )
        except BadOutput as error:
            unreadable = error
            continue
        tokens = sum(_counts(reflected.output.lines))
        if tokens and (best is None or tokens < best.tokens):
            best = _Best(reflected, request, tokens, level, " ".join(chosen.skipped))
            claimed.cycle.request_text = request_text(request)
        if 0 < tokens < claimed.target:
            break
    if best is None and unreadable is not None:
        raise unreadable
    if best is None or best.tokens >= claimed.tokens:
        raise NotSmaller(f"No attempt made these {claimed.tokens} tokens smaller.")
    return best


def commit(
    claimed: Claimed,
    reflected: reflector.Reflected,
    level: int,
    *,
    asked: values.ReflectorRequest | None = None,
    note: str = "",
) -> Observation:
    """Write a reflection, shown at once if so claimed, if the record is as it was.

    ``asked`` is the request it answers where a hook made that of other lines than were claimed.
    Raises CycleLost, RecordMoved or CursorMoved, with nothing written.
    """
    cycle = claimed.cycle
    with transaction.atomic():
        record = MemoryRecord(pk=cycle.record_id, epoch=cycle.epoch)
        number = None
        if cycle.kind == Cycle.Kind.REFLECT:
            number = record.advance(generations=1)
        else:
            record.hold()
        cycle.finish(Cycle.Status.DONE, level=level, note=note, **costs(cycle, reflected.reply))
        _compare(claimed)
        numbers = (asked or claimed.request(level)).numbers
        reflection = _write(claimed, reflected.output.lines, numbers)
        assert cycle.thread_id is not None
        publish_done(cycle)
        if number is not None:
            _show(claimed, reflection, number)
        dispatch(cycle.thread_id)
    return reflection


def _compare(claimed: Claimed) -> None:
    """Raise CursorMoved unless all lines claimed are visible and no reflection waits."""
    visible = Line.objects.filter(
        observation__in=claimed.sources, since__isnull=False, until__isnull=True, pinned=False
    ).count()
    waiting = Observation.objects.waiting_reflections(claimed.cycle.record_id)
    if visible != len(claimed.lines) or waiting.exists():
        raise CursorMoved("These lines were condensed meanwhile.")


def _write(
    claimed: Claimed,
    lines: Sequence[values.WrittenLine],
    numbers: Mapping[int, values.Line],
) -> Observation:
    cycle = claimed.cycle
    counts = _counts(lines)
    reflection = Observation.objects.create(
        record_id=cycle.record_id,
        thread_id=None,
        kind=Observation.Kind.REFLECTION,
        tokens=sum(counts),
        message_tokens=claimed.tokens,
        cycle_id=cycle.pk,
    )
    ReflectionSource.objects.bulk_create(
        [ReflectionSource(reflection=reflection, observation_id=pk) for pk in claimed.sources]
    )
    written = [
        _line(reflection, ordinal, line, tokens, [numbers[n] for n in line.cites if n in numbers])
        for ordinal, (line, tokens) in enumerate(zip(lines, counts, strict=True))
    ]
    Line.objects.bulk_create(written)
    pk, sources, epoch = reflection.pk, claimed.sources, claimed.cycle.epoch
    transaction.on_commit(lambda: kept.condensed(pk, sources, written, epoch=epoch), robust=True)
    return reflection


def _counts(lines: Sequence[values.WrittenLine]) -> list[int]:
    return [count_line(line.kind, line.text, line.said_at) for line in lines]


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
    view = look(claimed.cycle.thread_id, keep=False)
    assert view is not None
    replace_sources(view, reflection, number)
    trigger = "ceiling" if claimed.focus is None else MANUAL
    revision(view, number, Revision.Cause.REFLECT, cycle=claimed.cycle, trigger=trigger)
    publish(MemoryReflected(thread=view.thread.pk, record=view.record.pk, revision=number))
