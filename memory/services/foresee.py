"""Foresee the request that a turn beginning now would send. Nothing is written.

What a turn does before it asks is done here to the view that was read, by the same decisions;
the request is made by the function that makes the real one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Any
from uuid import UUID

from pydantic_ai.messages import ModelMessage

from memory.engine import on_demand
from memory.engine.lifecycle import Activate, ActivateReflection, Observe
from memory.models import Line, MemoryRecord, Message, Observation
from memory.models.state import State, read_state
from memory.tokens import count_message

from . import kept
from .activate import after
from .early import Early, early_of
from .kept import Raw
from .look import View, scope_of, view_of
from .prepare import MOST_ROUNDS, due
from .request import Prepared, message_block, plain, request_blocks, window_in

_NOTHING: Mapping[str, Any] = {}


class Unstored(Raw):
    """Hold a message that is not stored."""

    def __init__(self, row: Message, message: ModelMessage) -> None:
        super().__init__(row)
        self.__dict__["message"] = message


@dataclass(frozen=True)
class Foreseen:
    """Hold the request a turn would send, and what would be done before it.

    ``chunks`` are the buffered observations that would be shown, ``reflects`` tells that a waiting
    reflection would take its place; ``prepared.wait_seconds`` how long the turn would wait.
    ``window`` is what the model takes in, None when nobody knows.
    """

    prepared: Prepared
    prompt: Raw
    chunks: tuple[Observation, ...] = ()
    reflects: bool = False
    window: int | None = None


def state_ahead(thread_id: UUID, options: Mapping[str, Any] = _NOTHING) -> State:
    """Return a thread's state as a turn would read it, with other options if any are given.

    A record that a turn would make first is in it, unsaved. Raises Thread.DoesNotExist.
    """
    state = read_state(thread_id)
    record = state.record
    if state.thread.remembers and (
        record is None or (record.thread_id is None and scope_of(state) != record.scope)
    ):
        state = _without_record(state)
    if options and state.record is not None:
        record = copy(state.record)
        record.config = {**record.config, **options}
        state = replace(state, record=record)
    return state


def _without_record(state: State) -> State:
    thread, scope = state.thread, scope_of(state)
    own = thread if scope == MemoryRecord.Scope.THREAD else None
    return replace(
        state,
        record=MemoryRecord(resource_id=thread.resource_id, thread=own, scope=scope),
        observed_through=0,
        written_through=0,
        buffered_through=0,
        current_task="",
        suggested_response="",
        extracted="{}",
        reflection=None,
    )


def view_ahead(state: State) -> View | None:
    """Return the memory a turn would look at; None where there is none, or it just moved on."""
    if not state.thread.remembers or state.record is None:
        return None
    return view_of(state, keep=not state.record._state.adding)


def foresee(
    state: State,
    view: View | None,
    message: ModelMessage,
    *,
    at: datetime,
    overhead: int = 0,
    everything: bool = False,
) -> Foreseen:
    """Return what a turn with this prompt would send.

    ``overhead`` are the tokens of instructions and tools; ``everything`` shows all that is
    buffered first, whatever the thresholds say.
    """
    prompt = _prompt(state, message, at)
    if view is None:
        stored = plain(state.thread.pk)
        blocks = (*stored.blocks, message_block("message", prompt))
        return Foreseen(replace(stored, blocks=blocks), prompt)
    early = early_of(view, at)
    before = view.with_raw([prompt])
    chunks = [o for tail in view.tails for o in tail.buffered]
    settled, reflects = _settled(_all_shown(before) if everything else before, early)
    waiting = {o.pk for tail in settled.tails for o in tail.buffered}
    made = request_blocks(settled, prompt_position=prompt.position, at=at, overhead=overhead)
    waits = any(isinstance(decision, Observe) for decision in due(settled))
    return Foreseen(
        Prepared(
            tuple(made), settled.revision, settled.options.wait_seconds if waits else 0, settled
        ),
        prompt,
        tuple(o for o in chunks if o.pk not in waiting),
        reflects,
        window_in(settled),
    )


def _prompt(state: State, message: ModelMessage, at: datetime) -> Raw:
    row = Message(
        thread_id=state.thread.pk,
        position=state.thread.last_position + 1,
        kind=message.kind,
        payload={"kind": message.kind, "parts": []},
        tokens=count_message(message, state.actor_model),
        created_at=at,
    )
    return Unstored(row, message)


def _settled(view: View, early: Early) -> tuple[View, bool]:
    """Return the view after what is due and needs no model; tell if a reflection is shown."""
    reflects = False
    decisions = due(view, early=early.observation, early_reflection=early.reflection)
    for _ in range(MOST_ROUNDS):
        ready = next((d for d in decisions if isinstance(d, Activate | ActivateReflection)), None)
        if ready is None:
            break
        if isinstance(ready, Activate):
            view = _shown(view, ready)
        else:
            view, shown = _reflected(view)
            reflects = reflects or shown
        decisions = due(view)
    return view, reflects


def _all_shown(view: View) -> View:
    everything = on_demand.activate_all(view.snapshot())
    return view if everything is None else _shown(view, everything)


def _shown(view: View, activate: Activate) -> View:
    """Return the view as it is once chunks are shown."""
    chosen = {chunk.id for chunk in activate.chunks}
    rows = [o for tail in view.tails for o in tail.buffered if o.pk in chosen]
    rows.sort(key=lambda o: (o.thread_id, o.first_position, o.pk))
    of = {row.pk: row for row in rows}
    written = kept.lines_of(list(of), epoch=view.record.epoch)
    lines = [line_of(line, of[line.observation_id]) for line in written]
    next_one = _advanced(view)
    return after(next_one, rows, _memory(next_one, [*view.lines, *lines]))


def _advanced(view: View) -> View:
    record = copy(view.record)
    record.revision += 1
    return replace(view, record=record)


def _memory(view: View, lines: Sequence[Line]) -> kept.Shown:
    return kept.Shown(view.revision, view.record.epoch, tuple(lines))


def line_of(line: Line, of: Observation) -> Line:
    """Return a copy of a line that says what row it is of, as the visible lines of a view do."""
    # What is kept of a line is shared.
    line = copy(line)
    line.of_kind, line.of_thread = of.kind, of.thread_id  # type: ignore[attr-defined]
    return line


def _reflected(view: View) -> tuple[View, bool]:
    """Return the view once the waiting reflection is shown, and whether it is still wanted."""
    reflections = Observation.objects.waiting_reflections(view.record.pk)
    waiting = reflections.select_related("cycle").first()
    given_up = waiting and waiting.cycle is not None and waiting.cycle.epoch != view.record.epoch
    if waiting is None or given_up:
        return replace(view, reflection=None), False
    sources = kept.sources_of(waiting.pk, epoch=view.record.epoch)
    instead = [
        line_of(line, waiting) for line in kept.lines_of([waiting.pk], epoch=view.record.epoch)
    ]
    left = [x for x in view.lines if x.pinned or x.observation_id not in sources]
    order = _order(view, waiting, sources)
    lines = sorted([*left, *instead], key=lambda x: (*order[x.observation_id], x.ordinal))
    next_one = _advanced(view)
    return replace(next_one, memory=_memory(next_one, lines), reflection=None), True


Order = tuple[float, bool, UUID, int, UUID]


def _order(view: View, waiting: Observation, sources: Collection[UUID]) -> dict[UUID, Order]:
    """Return by row what lines are sorted by, the reflection in the place of its last source."""
    shown = {line.observation_id for line in view.lines}.union(sources)
    rows = Observation.objects.filter(pk__in=shown).order_by()
    order: dict[UUID, Order] = {}
    for row in rows.only("place", "thread", "first_position"):
        thread, first = row.thread_id, row.first_position
        place = inf if row.place is None else row.place
        order[row.pk] = (place, thread is not None, _key(thread), first or 0, row.pk)
    place = max((order[pk][0] for pk in sources if pk in order), default=inf)
    order[waiting.pk] = (place, False, _key(None), 0, waiting.pk)
    return order


def _key(thread: UUID | None) -> UUID:
    return thread or UUID(int=0)
