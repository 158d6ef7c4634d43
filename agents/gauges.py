"""Make the gauges of the live memory panel: what is raw, and what is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agents import words
from agents.page import REFLECTS, Scene
from memory.config import MemoryOptions
from memory.models import Cycle

SMALL = 10_000
TEMPORARY = (
    "This conversation is never remembered: nothing of it is ever observed, and no other "
    "conversation is told of it."
)
OFF = (
    "Memory is turned off for this conversation: nothing more of it is observed, and the agent is "
    "sent all of it. What is remembered stays for when it is on again."
)


class Limits(Protocol):
    """Describe the token counts at which something is due, as options resolve to them."""

    @property
    def observe(self) -> int: ...
    @property
    def buffer(self) -> int | None: ...
    @property
    def floor(self) -> int: ...
    @property
    def ceiling(self) -> int: ...
    @property
    def reflect(self) -> int: ...
    @property
    def buffer_reflection(self) -> int | None: ...
    @property
    def reflect_ceiling(self) -> int: ...
    def buffer_interval(self, pending: int) -> int | None: ...


@dataclass(frozen=True)
class Bar:
    """Show one filled part of a gauge; ``look`` is live, beside, ahead (hatched), kept or over."""

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
    shared: str = ""
    wrong: str = ""
    say: str = ""


def panel_of(scene: Scene) -> Panel:
    """Return the head of the panel."""
    if not scene.remembers:
        return Panel(off=TEMPORARY if scene.is_temporary else OFF)
    options = scene.options
    limits = options.thresholds().given(scene.line_tokens)
    gauges = _messages_gauge(scene, limits), _observations_gauge(scene, limits)
    return Panel(
        gauges=gauges,
        small=_small(options),
        shared=_sharers(scene) if scene.is_shared else "",
        wrong=scene.wrong,
        say=_crossed(gauges[0], limits),
    )


def _sharers(scene: Scene) -> str:
    count = scene.sharers
    return f"Shared by {count} conversation{'' if count == 1 else 's'}"


def _small(options: MemoryOptions) -> str:
    if options.message_tokens >= SMALL:
        return ""
    return (
        f"This agent has small thresholds ({words.tokens(options.message_tokens)} tokens of "
        f"messages, {words.tokens(options.observation_tokens)} of observations), "
        "so that memory forms within a dozen messages."
    )


def _messages_gauge(scene: Scene, limits: Limits) -> Gauge:
    pending = scene.pending_tokens
    own_ahead, ahead = (min(tokens, pending) for tokens in scene.buffered_tokens)
    own = max(0, scene.extent.pending_tokens - own_ahead)
    top = max(pending, limits.ceiling)
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
        caption=_messages_caption(scene, limits, ahead),
        bars=_bars(pending, ahead, own, top),
        ticks=_steps(limits.buffer or 0, limits.observe, top),
        limit=words.percent(limits.observe, top),
        after=words.percent(limits.floor, top) if ahead else "",
    )


def _bars(pending: int, ahead: int, own: int, top: int) -> tuple[Bar, ...]:
    """Return what is buffered, what other conversations say, and what this one does."""
    others = max(0, pending - ahead - own)
    bars = [Bar("ahead", "0%", words.percent(ahead, top))]
    if others:
        bars.append(Bar("beside", words.percent(ahead, top), words.percent(others, top)))
    return (*bars, Bar("live", words.percent(ahead + others, top), words.percent(own, top)))


def _messages_caption(scene: Scene, limits: Limits, ahead: int) -> str:
    pending = scene.pending_tokens
    failed = _last_failure(scene)
    interval = limits.buffer_interval(pending)
    parts = [failed] if failed else []
    if scene.is_shared:
        parts.append(f"This conversation: {words.tokens(scene.extent.pending_tokens)}")
    if interval is not None:
        at = ahead + interval
        due = pending >= at
        parts.append(_due(scene) if due else f"Next buffer at {words.tokens(at)}")
        parts.append(f"activates at {words.tokens(limits.observe)}")
        parts.append(f"blocks at {words.tokens(limits.ceiling)}")
    else:
        parts.append(f"Observes at {words.tokens(limits.observe)}, the turn waits for it")
    return " · ".join(parts)


def _due(scene: Scene) -> str:
    """Say that an Observer is due, and what for it waits: after a failure it rests, and says so."""
    running = any(cycle.status == Cycle.Status.RUNNING for cycle in scene.latest_cycles)
    if running or _last_failure(scene):
        return "Buffering is due"
    return "Buffering is due and waits for a worker"


_WRONG = (Cycle.Status.FAILED, Cycle.Status.CANCELLED)


def _last_failure(scene: Scene) -> str:
    ended = (c for c in scene.latest_cycles if c.status != Cycle.Status.RUNNING)
    latest = next(ended, None)
    if latest is None or latest.finished_at is None or latest.status not in _WRONG:
        return ""
    at = words.clock(latest.finished_at.astimezone(scene.zone))
    return f"Last {_noun(latest)} {latest.status} at {at}"


def _noun(cycle: Cycle) -> str:
    return "reflection" if cycle.kind in REFLECTS else "observation"


def _observations_gauge(scene: Scene, limits: Limits) -> Gauge:
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


def _crossed(gauge: Gauge, limits: Limits) -> str:
    share = gauge.value / limits.observe
    if share >= 1:
        return "Messages passed the threshold"
    return "Messages at 80 percent of the threshold" if share >= 0.8 else ""
