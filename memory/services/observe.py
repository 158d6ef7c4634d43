"""Observe a range of messages: ahead of time (buffer), or at once while a turn waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import tzinfo
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import transaction

from memory import observer
from memory.dispatch import dispatch
from memory.engine import values
from memory.engine.lifecycle import Buffer, Observe, decide
from memory.engine.prompts.observer import observer_request
from memory.events import CycleFinished, MemoryActivated
from memory.messages import load, parts_of
from memory.models import Cursor, Cycle, Line, MemoryRecord, Message, Observation, Revision
from memory.models.cycle import CycleLost, observer_lane
from memory.models.record import CursorMoved, RecordMoved
from memory.publish import publish
from memory.tokens import TOKENIZER, count

from .activate import revision, show
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


@dataclass(frozen=True)
class Claimed:
    """Hold a claimed cycle with its frozen request."""

    cycle: Cycle
    request: values.ObserverRequest
    model: str
    zone: tzinfo
    agent: str


def claim(thread_id: UUID, *, waiting: bool = False) -> Claimed | None:
    """Claim the observation that is due, if any and if nobody is at it.

    ``waiting`` claims what a turn waits for at the ceiling, else only what is done ahead.
    """
    with transaction.atomic():
        view = look(thread_id)
        return None if view is None else claim_of(view, waiting=waiting)


def claim_of(view: View, *, waiting: bool = False) -> Claimed | None:
    """Claim what is due in a view taken in the same transaction."""
    lane = observer_lane(view.thread.pk)
    wanted = Observe if waiting else Buffer
    decisions = decide(view.snapshot(), view.options.thresholds())
    due = next((decision for decision in decisions if isinstance(decision, wanted)), None)
    if due is None:
        return None
    state = lane_state(view.record.pk, lane)
    if not state.open or _is_covered(view, due):
        return None
    return _open(view, due, lane, failures=state.failures, fallback=state.fallback)


def _is_covered(view: View, due: Buffer | Observe) -> bool:
    """Tell whether the cursor is past a range already: its commit could only be given up."""
    return Cursor.objects.filter(
        record=view.record, thread=view.thread, buffered_through__gte=due.first_position
    ).exists()


def _open(
    view: View, due: Buffer | Observe, lane: str, *, failures: int, fallback: bool
) -> Claimed | None:
    request = _request(view, due)
    kind = Cycle.Kind.OBSERVE if isinstance(due, Observe) else Cycle.Kind.BUFFER
    cycle = open_cycle(
        view,
        lane,
        request=request_text(request),
        kind=kind,
        trigger="fallback"
        if fallback
        else ("ceiling" if kind == Cycle.Kind.OBSERVE else "interval"),
        first_position=due.first_position,
        last_position=due.last_position,
        message_tokens=due.tokens,
        observation_tokens=view.tokens,
        attempt=failures + 1,
    )
    if cycle is None:
        return None
    chosen = view.options.observer_model or settings.MEMORY_MODELS["observer"]
    return Claimed(
        cycle=cycle,
        request=request,
        model=FALLBACK_MODEL if fallback else chosen,
        zone=view.zone,
        agent=view.thread.agent,
    )


def request_text(request: values.ObserverRequest | values.ReflectorRequest) -> str:
    """Return a request as the one text it is kept as."""
    return "\n\n".join((request.instructions, *request.prompt))


def _request(view: View, due: Buffer | Observe) -> values.ObserverRequest:
    in_range = [m for m in view.raw if due.first_position <= m.position <= due.last_position]
    buffered = Line.objects.filter(
        observation__in=[observation.pk for observation in view.buffered]
    ).order_by("observation__first_position", "ordinal")
    return observer_request(
        [message_value(message) for message in in_range],
        previous=[line_value(line) for line in (*view.lines, *buffered)],
        hints=view.hints,
        tz=view.zone,
        tokenizer=TOKENIZER,
        previous_tokens=view.options.previous_observer_tokens,
        want_title=view.options.thread_title,
        instruction=view.options.instruction,
    )


def message_value(message: Message) -> values.Message:
    """Return a stored message as the engine reads it."""
    return values.Message(
        position=message.position,
        kind=values.MessageKind(message.kind),
        parts=parts_of(load(message.payload)),
        tokens=message.tokens,
        at=message.created_at,
    )


async def run(claimed: Claimed, *, resolve: Resolve = resolve_model) -> bool:
    """Think and commit. Return False when that failed and the lane rests; nothing is raised."""
    cycle = claimed.cycle
    try:
        async with kept_alive(cycle):
            model = await asyncio.to_thread(resolve, claimed.model)
            observed = await observer.observe(claimed.request, model=model, tz=claimed.zone)
        await sync_to_async(commit)(claimed, observed)
    except (CycleLost, RecordMoved, CursorMoved) as moved:
        await sync_to_async(discard)(cycle, str(moved))
    except Exception as error:  # noqa: BLE001 - whatever fails here must not fail a turn
        logger.info("Cycle %s failed: %s", cycle.pk, error)
        await sync_to_async(fail)(cycle, error)
        return False
    return True


def commit(claimed: Claimed, observed: observer.Observed) -> Observation:
    """Write an observation and move the cursor, if the world is as it was at the claim.

    Raises CycleLost, RecordMoved or CursorMoved, with nothing written.
    """
    cycle = claimed.cycle
    with transaction.atomic():
        record = MemoryRecord.objects.get(pk=cycle.record_id)
        number = _lock(record, cycle)
        cycle.finish(Cycle.Status.DONE, **costs(observed.reply))
        cursor = _cursor(cycle)
        observation = _write(claimed, observed.output)
        if number is None:
            cursor.move(
                buffered_through=cycle.last_position or 0, observed_through=cursor.observed_through
            )
        else:
            _show(claimed, number)
        assert cycle.thread_id is not None
        publish(CycleFinished(thread=cycle.thread_id, record=record.pk, cycle=cycle.pk))
        dispatch(cycle.thread_id)
    return observation


def _lock(record: MemoryRecord, cycle: Cycle) -> int | None:
    """Take the record's row at the cycle's epoch; return the revision when one is made."""
    record.epoch = cycle.epoch
    if cycle.kind == Cycle.Kind.OBSERVE:
        return record.advance()
    record.hold()
    return None


def _cursor(cycle: Cycle) -> Cursor:
    """Return the cursor, standing where this cycle's range begins. Raises CursorMoved."""
    assert cycle.thread_id is not None
    assert cycle.first_position is not None
    cursor, _ = Cursor.objects.get_or_create(record_id=cycle.record_id, thread_id=cycle.thread_id)
    if cursor.buffered_through >= cycle.first_position:
        raise CursorMoved("These messages were observed meanwhile.")
    return cursor


def _write(claimed: Claimed, output: values.ObserverOutput) -> Observation:
    cycle = claimed.cycle
    counts = [count(line.text) for line in output.lines]
    observation = Observation.objects.create(
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
        cycle=cycle,
    )
    Line.objects.bulk_create(
        [
            _line(observation, ordinal, line, tokens, claimed.request)
            for ordinal, (line, tokens) in enumerate(zip(output.lines, counts, strict=True))
        ]
    )
    return observation


def _line(
    observation: Observation,
    ordinal: int,
    line: values.WrittenLine,
    tokens: int,
    request: values.ObserverRequest,
) -> Line:
    cited = [request.numbers[number] for number in line.cites if number in request.numbers]
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


def _show(claimed: Claimed, number: int) -> None:
    """Show all that is buffered, the new observation last, as one revision."""
    cycle = claimed.cycle
    assert cycle.thread_id is not None
    view = look(cycle.thread_id)
    assert view is not None
    before = sum(message.tokens for message in view.raw)
    covered = sum(observation.message_tokens for observation in view.buffered)
    show(view, view.buffered, number)
    revision(
        view,
        number,
        Revision.Cause.OBSERVE,
        cycle=cycle,
        trigger="ceiling",
        message_tokens=(before, max(0, before - covered)),
    )
    publish(MemoryActivated(thread=cycle.thread_id, record=cycle.record_id, revision=number))


async def observe_while_waiting(
    thread_id: UUID, *, seconds: float, resolve: Resolve = resolve_model
) -> None:
    """Let a turn wait for one observation, or for the one that is running, within a bound.

    The work goes on in the background when the bound is reached; nothing is raised.
    """
    claimed = await sync_to_async(claim)(thread_id, waiting=True)
    work = asyncio.ensure_future(_work(thread_id, claimed, resolve))
    _UNDER_WAY.add(work)
    work.add_done_callback(_UNDER_WAY.discard)
    await asyncio.wait({work}, timeout=seconds)
    if claimed is None:
        work.cancel()


_UNDER_WAY: set[asyncio.Future[None]] = set()
POLL_SECONDS = 0.1


async def _work(thread_id: UUID, claimed: Claimed | None, resolve: Resolve) -> None:
    if claimed is not None:
        await run(claimed, resolve=resolve)
        return
    while await sync_to_async(_busy)(thread_id):
        await asyncio.sleep(POLL_SECONDS)


def _busy(thread_id: UUID) -> bool:
    lane = observer_lane(thread_id)
    return (
        Cycle.objects.running()
        .filter(thread=thread_id, lane=lane, record__closed_at__isnull=True)
        .exclude(pk__in=Cycle.objects.lapsed().filter(thread=thread_id).values("pk"))
        .exists()
    )
