"""Make what the live memory panel shows below its gauges: operations, chunks, observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from statistics import median_low
from typing import Any, ClassVar

from django.urls import reverse

from agents import words
from agents.lines import LineShown, line_shown
from agents.markers import doing, state_and_words
from agents.page import REFLECTS, Scene
from agents.shared import Tail
from memory.models import Cycle, Line, Observation, Thread

MOST_BESIDE = 8
MANUAL = "manual"


@dataclass(frozen=True)
class Operation:
    """Show one running or ended cycle."""

    key: str
    state: str
    words: str
    since: str
    since_words: str
    detail: str
    thread: str = ""
    title: str = ""
    cancel: str = ""


@dataclass(frozen=True)
class Work:
    """Show the running operations and the results of the latest ended ones."""

    running: tuple[Operation, ...] = ()
    recent: tuple[Operation, ...] = ()
    say: str = ""


def work_of(scene: Scene) -> Work:
    """Return the operations of a scene."""
    running = [c for c in scene.latest_cycles if c.status == Cycle.Status.RUNNING]
    ended = [c for c in scene.latest_cycles if c.status != Cycle.Status.RUNNING]
    shown = [_operation(scene, cycle) for cycle in scene.latest_cycles[:1]]
    return Work(
        running=tuple(_operation(scene, cycle) for cycle in running),
        recent=tuple(_operation(scene, cycle) for cycle in ended[:3]),
        say=shown[0].words.strip("✓✕⚠ ") if shown else "",
    )


def _operation(scene: Scene, cycle: Cycle) -> Operation:
    written = next(iter(cycle.observations.all()), None)
    state, text = state_and_words(cycle, written)
    at = cycle.finished_at or cycle.started_at
    of = cycle.thread if _is_elsewhere(scene, cycle) else None
    return Operation(
        key=str(cycle.pk),
        state=state,
        words=text,
        since=at.isoformat(timespec="seconds"),
        since_words=words.ago(scene.now, at),
        detail=" · ".join([*_details(cycle), *_usual(scene, cycle)]),
        thread=str(of.pk) if of else "",
        title=str(of) if of else "",
        cancel=cancelling(scene, cycle),
    )


def _usual(scene: Scene, cycle: Cycle) -> Iterator[str]:
    """Yield how long a running cycle will take, as far as the last of its kind tell."""
    if cycle.status == Cycle.Status.RUNNING and (took := scene.lasted(cycle)):
        yield f"usually {words.lasted(median_low(took))}"


def cancelling(scene: Scene, cycle: Cycle) -> str:
    """Return where a running cycle is cancelled; empty for one that has ended."""
    if cycle.status != Cycle.Status.RUNNING:
        return ""
    return reverse("cancel", args=[scene.thread_id, cycle.pk])


def _is_elsewhere(scene: Scene, cycle: Cycle) -> bool:
    return cycle.thread_id != scene.thread_id and cycle.kind not in REFLECTS


def _details(cycle: Cycle) -> Iterator[str]:
    if cycle.model:
        yield cycle.model
    if cycle.finished_at is not None:
        yield words.lasted(cycle.finished_at - cycle.started_at)
    if cycle.attempt > 1:
        yield f"attempt {cycle.attempt}"
    if cycle.level > 1:
        yield f"level {cycle.level}"
    if cycle.error:
        yield cycle.error
    if cycle.note:
        yield cycle.note


@dataclass(frozen=True)
class ChunkShown:
    """Show one buffered observation."""

    id: str
    before: str
    after: str
    first: int
    last: int
    lines: tuple[LineShown, ...]
    thread: str = ""
    title: str = ""


def chunks_of(scene: Scene) -> list[ChunkShown]:
    """Return the buffered observations of a scene."""
    return [_chunk(scene, chunk) for chunk in scene.chunks]


def _chunk(scene: Scene, chunk: Observation) -> ChunkShown:
    of = chunk.thread if chunk.thread_id != scene.thread_id else None
    return ChunkShown(
        id=str(chunk.pk),
        before=words.tokens(chunk.message_tokens),
        after=words.tokens(chunk.tokens),
        first=chunk.first_position or 0,
        last=chunk.last_position or 0,
        lines=tuple(line_shown(line, scene.zone) for line in chunk.lines.all()),
        thread=str(of.pk) if of else "",
        title=str(of) if of else "",
    )


@dataclass(frozen=True)
class Beside:
    """Show another conversation that the agent is told of."""

    template: ClassVar = "beside-row"
    thread: str
    title: str
    words: str


@dataclass(frozen=True)
class Others:
    """Show the other conversations of a shared memory, and what the agent is told of them."""

    count: int = 0
    tokens: str = ""
    threads: tuple[Beside, ...] = ()
    more: int = 0
    text: str = ""
    told: str = ""


def others_of(scene: Scene) -> Others:
    """Return what the other conversations say that memory has not observed."""
    tails = scene.tails
    if not tails:
        return Others()
    text, told = scene.told
    budget = scene.options.other_conversations_tokens
    return Others(
        count=len(tails),
        tokens=words.tokens(sum(tail.tokens for tail in tails)),
        threads=tuple(_beside(tail) for tail in tails[:MOST_BESIDE]),
        more=max(0, len(tails) - MOST_BESIDE),
        text=text,
        told=words.tokens(told) if text else f"at most {words.tokens(budget)}",
    )


def _beside(tail: Tail) -> Beside:
    noun = "message" if tail.messages == 1 else "messages"
    said = f"{tail.messages} {noun} · {words.tokens(tail.tokens)} tokens"
    return Beside(str(tail.thread), tail.title, said)


@dataclass(frozen=True)
class Day:
    """Show the lines of one date; one date can come twice, since memory has its own order."""

    key: str
    name: str
    at: str
    ago: str
    lines: tuple[LineShown, ...]


@dataclass(frozen=True)
class Seen:
    """Show the lines the agent sees."""

    days: tuple[Day, ...] = ()
    count: int = 0
    tokens: str = "0"
    hint: str = ""
    earlier: int = 0
    page: str = ""


def seen_of(scene: Scene) -> Seen:
    """Return the visible observations of a scene, by date."""
    count, tokens = scene.line_totals
    if not count:
        return Seen(hint=first_hint(scene))
    return Seen(
        days=tuple(_days(scene)),
        count=count,
        tokens=words.tokens(tokens),
        earlier=max(0, count - len(scene.newest_lines)),
        page=f"/memory/{scene.thread_id}/",
    )


def _days(scene: Scene) -> Iterator[Day]:
    page = f"/memory/{scene.thread_id}/"
    dated = _dated(
        replace(line_shown(line, scene.zone, _other(scene, line)), page=page)
        for line in scene.newest_lines
    )
    for ordinal, (date, lines) in enumerate(groupby(dated, key=lambda pair: pair[0])):
        shown = tuple(line for _, line in lines)
        if not date:
            yield Day(f"{ordinal}", "Undated", "", "", shown)
            continue
        at = datetime.fromisoformat(date)
        past = (scene.now.astimezone(scene.zone).date() - at.date()).days
        ago = f"({words.days_ago(past)})"
        yield Day(f"{ordinal}-{date}", words.day(at), date, ago, shown)


def _other(scene: Scene, line: Line) -> Thread | None:
    thread = line.observation.thread
    return None if thread is None or thread.pk == scene.thread_id else thread


def _dated(lines: Iterable[LineShown]) -> Iterator[tuple[str, LineShown]]:
    """Pair each line with its date; one without a time belongs to the line before it."""
    date = ""
    for line in lines:
        date = line.at[:10] or date
        yield date, line


def first_hint(scene: Scene) -> str:
    """Return when memory will form in this thread."""
    if not scene.remembers:
        return ""
    limits = scene.options.thresholds()
    if limits.shared is not None:
        limits = limits.given(scene.line_tokens)
    text = f"Memory starts after {words.tokens(limits.observe)} tokens of messages"
    return f"{text}; buffering at {words.tokens(limits.buffer)}." if limits.buffer else f"{text}."


def generations_of(scene: Scene) -> dict[str, Any]:
    """Return how many reflections stand behind the visible text."""
    record = scene.record
    return {"count": record.generation, "record": record.pk} if record else {"count": 0}


def at_work(scene: Scene) -> str:
    """Return the words for what a running turn is doing."""
    waits = _waited_for(scene) is not None
    return f"{doing(Cycle.Kind.OBSERVE)} before answering" if waits else "Answering"


@dataclass(frozen=True)
class Blocked:
    """Show what a turn waits for before it is answered."""

    since: str
    detail: str
    skip: str


def blocked(scene: Scene) -> Blocked | None:
    """Return the observation that the running turn waits for, if it waits for one."""
    cycle = _waited_for(scene)
    if cycle is None:
        return None
    detail = [f"{words.tokens(cycle.message_tokens)} tokens"]
    detail += [f"attempt {cycle.attempt}"] if cycle.attempt > 1 else []
    detail.append(f"at most {scene.options.wait_seconds:g} s, then it is answered anyway")
    detail += _usual(scene, cycle)
    since = cycle.started_at.isoformat(timespec="seconds")
    return Blocked(since, " · ".join(detail), cancelling(scene, cycle))


def _waited_for(scene: Scene) -> Cycle | None:
    running = (c for c in scene.latest_cycles if c.status == Cycle.Status.RUNNING)
    return next((c for c in running if c.kind == Cycle.Kind.OBSERVE and c.trigger != MANUAL), None)
