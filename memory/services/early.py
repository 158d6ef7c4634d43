"""Tell why buffered work is to be shown before its threshold.

A provider keeps a prompt for some minutes, and for itself. When the conversation rested longer,
or another model answers from now on, nothing of the prompt is cached any more: then a short one
costs less than the long one that was spared so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic_ai.messages import ModelResponse

from memory.config import MemoryOptions, Phase, idle_seconds
from memory.engine.dates import gap_marker
from memory.llm import spelled
from memory.models.state import State

from .look import View, options_in

IDLE = "idle"
PROVIDER_CHANGE = "provider_change"
PHASES: tuple[Phase, ...] = ("observer", "reflector")


@dataclass(frozen=True)
class Early:
    """Name what asks for observations, and for a reflection, before the threshold; or nothing."""

    observation: str = ""
    reflection: str = ""


def early_of(view: View, at: datetime) -> Early:
    """Return what asks for it at a time; the view was taken before the prompt was stored."""
    options = view.options
    rested = idle_of(options, view.actor_model, _rest(view, at))
    watched = options.activate_on_provider_change or options.reflection_activate_on_provider_change
    if not (watched and _changed(view)):
        return rested
    return Early(
        PROVIDER_CHANGE if options.activate_on_provider_change else rested.observation,
        PROVIDER_CHANGE if options.reflection_activate_on_provider_change else rested.reflection,
    )


def idle_of(options: MemoryOptions, model: str, seconds: float) -> Early:
    """Return what asks for it after so many seconds in which nothing was said."""
    pauses = (idle_seconds(options, model, phase=phase) for phase in PHASES)
    observation, reflection = (
        IDLE if pause is not None and seconds >= pause else "" for pause in pauses
    )
    return Early(observation, reflection)


def _rest(view: View, at: datetime) -> float:
    """Return for how many seconds nothing was said; a thread without messages has not begun."""
    thread = view.thread
    return (at - thread.last_active_at).total_seconds() if thread.last_position else 0.0


def _changed(view: View) -> bool:
    """Tell whether another model answers now than answered last, as far as both are known."""
    answers = (raw.message for raw in reversed(view.raw))
    last = next((m for m in answers if isinstance(m, ModelResponse) and m.model_name), None)
    if last is None or not view.actor_model:
        return False
    provider, model = spelled(view.actor_model)
    if provider and last.provider_name and _base(provider) != _base(last.provider_name):
        return True
    if provider == "openrouter":
        model = model.partition(":")[0]  # What follows says how it is served.
    answered = last.model_name or ""
    # Providers answer with the exact version of the model that was asked for.
    return not (_is_file(answered) or answered.startswith(model))


def _is_file(answered: str) -> bool:
    """Tell whether a local server named the file it loaded, which says nothing of the model."""
    return answered.startswith(("/", ".", "~")) or "\\" in answered or answered.endswith(".gguf")


def _base(provider: str) -> str:
    return provider.partition(".")[0].partition("-")[0]


def gap_before(state: State, at: datetime) -> str:
    """Return how long nothing was said before a time, where that is to be told; else nothing."""
    thread = state.thread
    if not thread.last_position or state.record is None or not options_in(state).temporal_markers:
        return ""
    seconds = (at - thread.last_active_at).total_seconds()
    return gap_marker(seconds, at.astimezone(ZoneInfo(thread.resource.time_zone)))
