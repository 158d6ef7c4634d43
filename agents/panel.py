"""Make what the live memory panel shows: gauges, operations, chunks, hints, observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from pydantic import ValidationError

from agents import words
from agents.markers import LineShown, doing, line_shown, state_and_words
from agents.page import Scene
from memory.config import MemoryOptions
from memory.models import Cycle, Observation

SMALL = 10_000


@dataclass(frozen=True)
class Bar:
    """Show one filled part of a gauge; ``look`` is live, ahead (hatched), kept or over."""

    look: str
    start: str
    width: str


@dataclass(frozen=True)
class Gauge:
    """Show a level in a range. Places are percentages of ``top``, as SVG takes them."""

    key: str
    name: str
    value: int
    top: int
    label: str
    exact: str
    spoken: str
    caption: str
    bars: tuple[Bar, ...]
    ticks: tuple[str, ...]
    limit: str
    after: str = ""


@dataclass(frozen=True)
class Panel:
    """Show the gauges, or why there are none; ``say`` is announced when it changes."""

    gauges: tuple[Gauge, ...] = ()
    off: str = ""
    small: str = ""
    say: str = ""


def panel_of(scene: Scene) -> Panel:
    """Return the head of the panel."""
    if not scene.remembers:
        whose = "this thread" if not scene.thread.remembers else "this agent"
        return Panel(off=f"Memory is turned off for {whose}: nothing of it is ever observed.")
    options = scene.options
    if isinstance(options, ValidationError):
        return Panel(off=f"The memory options are wrong: {_first_error(options)}")
    gauges = _messages_gauge(scene, options), _observations_gauge(scene, options)
    return Panel(gauges=gauges, small=_small(options), say=_crossed(gauges[0], options))


def _first_error(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def _small(options: MemoryOptions) -> str:
    if options.message_tokens >= SMALL:
        return ""
    return (
        f"This agent has small thresholds ({words.tokens(options.message_tokens)} tokens of "
        f"messages, {words.tokens(options.observation_tokens)} of observations), "
        "so that memory forms within a dozen messages."
    )


def _messages_gauge(scene: Scene, options: MemoryOptions) -> Gauge:
    limits = options.thresholds()
    pending = scene.extent.pending_tokens
    ahead = min(scene.coverage.buffered_tokens, pending)
    top = max(pending, limits.ceiling)
    step = limits.buffer or 0
    label = f"{words.tokens(pending)} / {words.tokens(limits.observe)}"
    return Gauge(
        key="messages",
        name="Messages",
        value=pending,
        top=top,
        label=label,
        exact=f"{pending} of {limits.observe} tokens, {ahead} buffered",
        spoken=_spoken(pending, limits.observe)
        + (f", {words.spoken(ahead)} already buffered" if ahead else ""),
        caption=_messages_caption(scene, options, ahead),
        bars=(
            Bar("ahead", "0%", words.percent(ahead, top)),
            Bar("live", words.percent(ahead, top), words.percent(pending - ahead, top)),
        ),
        ticks=_steps(step, limits.observe, top),
        limit=words.percent(limits.observe, top),
        after=words.percent(limits.floor, top) if ahead else "",
    )


def _messages_caption(scene: Scene, options: MemoryOptions, ahead: int) -> str:
    limits = options.thresholds()
    failed = _last_failure(scene)
    interval = limits.buffer_interval(scene.extent.pending_tokens)
    parts = [failed] if failed else []
    if interval is not None:
        at = ahead + interval
        due = scene.extent.pending_tokens >= at
        parts.append("Buffering is due" if due else f"Next buffer at {words.tokens(at)}")
        parts.append(f"activates at {words.tokens(limits.observe)}")
        parts.append(f"blocks at {words.tokens(limits.ceiling)}")
    else:
        parts.append(f"Observes at {words.tokens(limits.observe)}, the turn waits for it")
    return " · ".join(parts)


def _last_failure(scene: Scene) -> str:
    ended = (c for c in scene.latest_cycles if c.status != Cycle.Status.RUNNING)
    latest = next(ended, None)
    if latest is None or latest.status != Cycle.Status.FAILED or latest.finished_at is None:
        return ""
    return (
        f"Last {_noun(latest)} failed at {words.clock(latest.finished_at.astimezone(scene.zone))}"
    )


def _noun(cycle: Cycle) -> str:
    reflects = cycle.kind in (Cycle.Kind.REFLECT, Cycle.Kind.BUFFER_REFLECTION)
    return "reflection" if reflects else "observation"


def _observations_gauge(scene: Scene, options: MemoryOptions) -> Gauge:
    limits = options.thresholds()
    tokens = scene.line_tokens
    top = max(tokens, limits.reflect_ceiling)
    generation = scene.record.generation if scene.record else 0
    ahead = limits.buffer_reflection
    caption = [f"Background reflection at {words.tokens(ahead)}"] if ahead else []
    caption += [f"condenses at {words.tokens(limits.reflect)}", f"generation {generation}"]
    return Gauge(
        key="observations",
        name="Observations",
        value=tokens,
        top=top,
        label=f"{words.tokens(tokens)} / {words.tokens(limits.reflect)}",
        exact=f"{tokens} of {limits.reflect} tokens",
        spoken=_spoken(tokens, limits.reflect),
        caption=" · ".join(caption),
        bars=(Bar("kept", "0%", words.percent(tokens, top)),),
        ticks=(words.percent(ahead, top),) if ahead else (),
        limit=words.percent(limits.reflect, top),
    )


def _spoken(value: int, limit: int) -> str:
    return f"{words.spoken(value)} of {words.spoken(limit)} tokens"


def _steps(step: int, limit: int, top: int) -> tuple[str, ...]:
    return tuple(words.percent(x, top) for x in range(step, limit, step)) if step else ()


def _crossed(gauge: Gauge, options: MemoryOptions) -> str:
    share = gauge.value / options.message_tokens
    if share >= 1:
        return "Messages passed the threshold"
    return "Messages at 80 percent of the threshold" if share >= 0.8 else ""


@dataclass(frozen=True)
class Operation:
    """Show one running or ended cycle."""

    key: str
    state: str
    words: str
    since: str
    since_words: str
    detail: str


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
    return Operation(
        key=str(cycle.pk),
        state=state,
        words=text,
        since=at.isoformat(timespec="seconds"),
        since_words=words.ago(scene.now, at),
        detail=" · ".join(_details(cycle)),
    )


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


@dataclass(frozen=True)
class ChunkShown:
    """Show one buffered observation."""

    id: str
    before: str
    after: str
    first: int
    last: int
    lines: tuple[LineShown, ...]


def chunks_of(scene: Scene) -> list[ChunkShown]:
    """Return the buffered observations of a scene."""
    return [_chunk(scene, chunk) for chunk in scene.chunks]


def _chunk(scene: Scene, chunk: Observation) -> ChunkShown:
    return ChunkShown(
        id=str(chunk.pk),
        before=words.tokens(chunk.message_tokens),
        after=words.tokens(chunk.tokens),
        first=chunk.first_position or 0,
        last=chunk.last_position or 0,
        lines=tuple(line_shown(line, scene.zone) for line in chunk.lines.all()),
    )


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


def seen_of(scene: Scene) -> Seen:
    """Return the visible observations of a scene, by date."""
    if not scene.lines:
        return Seen(hint=first_hint(scene))
    return Seen(
        days=tuple(_days(scene)),
        count=len(scene.lines),
        tokens=words.tokens(sum(line.tokens for line in scene.lines)),
    )


def _days(scene: Scene) -> Iterator[Day]:
    dated = _dated(line_shown(line, scene.zone) for line in scene.lines)
    for ordinal, (date, lines) in enumerate(groupby(dated, key=lambda pair: pair[0])):
        shown = tuple(line for _, line in lines)
        if not date:
            yield Day(f"{ordinal}", "Undated", "", "", shown)
            continue
        at = datetime.fromisoformat(date)
        past = (scene.now.astimezone(scene.zone).date() - at.date()).days
        ago = f"({words.days_ago(past)})"
        yield Day(f"{ordinal}-{date}", words.day(at), date, ago, shown)


def _dated(lines: Iterable[LineShown]) -> Iterator[tuple[str, LineShown]]:
    """Pair each line with its date; one without a time belongs to the line before it."""
    date = ""
    for line in lines:
        date = line.at[:10] or date
        yield date, line


def first_hint(scene: Scene) -> str:
    """Return when memory will form in this thread."""
    options = scene.options
    if not scene.remembers or isinstance(options, ValidationError):
        return ""
    limits = options.thresholds()
    text = f"Memory starts after {words.tokens(limits.observe)} tokens of messages"
    return f"{text}; buffering at {words.tokens(limits.buffer)}." if limits.buffer else f"{text}."


def generations_of(scene: Scene) -> dict[str, Any]:
    """Return how many reflections stand behind the visible text."""
    record = scene.record
    return {"count": record.generation, "record": record.pk} if record else {"count": 0}


def at_work(scene: Scene) -> str:
    """Return the words for what a running turn is doing."""
    blocking = Cycle.Kind.OBSERVE
    waits = any(
        c.kind == blocking and c.status == Cycle.Status.RUNNING for c in scene.latest_cycles
    )
    return f"{doing(blocking)} before answering" if waits else "Answering"
