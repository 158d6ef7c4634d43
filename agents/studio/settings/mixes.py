"""Explain options that do nothing together, or fight each other, beside the field they are at.

What cannot be is refused by ``memory.options``; this is about what can be, and surprises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agents import words
from memory.config import MemoryOptions


@dataclass(frozen=True)
class _Mix:
    """Say something beside an option where a condition holds."""

    at: str
    when: Callable[[MemoryOptions], bool]
    said: str


def _unbuffered(options: MemoryOptions) -> bool:
    return options.buffer_tokens is False


_MIXES = (
    _Mix(
        "buffer_tokens",
        _unbuffered,
        "Nothing is observed ahead of time: the turn that reaches the threshold waits for its "
        "observation.",
    ),
    _Mix(
        "block_after",
        _unbuffered,
        "Without effect: with observing ahead turned off the threshold itself is the ceiling.",
    ),
    _Mix(
        "share_token_budget",
        lambda o: o.share_token_budget and _unbuffered(o),
        "Goes with observing ahead, which is off: every turn past the shared budget waits.",
    ),
    _Mix(
        "buffer_on_idle",
        lambda o: o.buffer_on_idle and _unbuffered(o),
        "Without effect: observing ahead is off.",
    ),
    _Mix(
        "activate_after_idle",
        lambda o: o.activate_after_idle is not False and _unbuffered(o),
        "Without effect: nothing is observed ahead, so nothing waits to be shown.",
    ),
    _Mix(
        "activate_on_provider_change",
        lambda o: o.activate_on_provider_change and _unbuffered(o),
        "Without effect: nothing is observed ahead, so nothing waits to be shown.",
    ),
    _Mix(
        "reflection_buffer_activation",
        _unbuffered,
        "Without effect: work ahead of time is off for the Reflector too.",
    ),
    _Mix(
        "reflection_activate_after_idle",
        lambda o: o.reflection_activate_after_idle is not False and _unbuffered(o),
        "Without effect: no reflection is written ahead.",
    ),
    _Mix(
        "reflection_activate_on_provider_change",
        lambda o: o.reflection_activate_on_provider_change and _unbuffered(o),
        "Without effect: no reflection is written ahead.",
    ),
    _Mix(
        "wait_seconds",
        lambda o: o.wait_seconds == 0,
        "Turns never wait: past the ceiling they go on with everything raw.",
    ),
    _Mix(
        "observe_attachments",
        lambda o: o.observe_attachments is True,
        "Everything is sent: a model that cannot read a type refuses the whole call.",
    ),
)


def notes(options: MemoryOptions, *, tools: Collection[str] = ()) -> dict[str, str]:
    """Return what is to be said beside options; ``tools`` are those of the agent."""
    found = {mix.at: mix.said for mix in _MIXES if mix.when(options)}
    return found | _against_window(options) | _recall(options, tools)


def _against_window(options: MemoryOptions) -> dict[str, str]:
    limits = options.thresholds().given(0)
    window, needed = options.context_tokens, limits.ceiling + limits.reflect_ceiling
    if window is False or window >= needed:
        return {}
    return {
        "context_tokens": (
            f"Messages and observations may reach {words.tokens(needed)} tokens before anything "
            "waits: the oldest messages may be left out of requests until then."
        )
    }


def _recall(options: MemoryOptions, tools: Collection[str]) -> dict[str, str]:
    if options.retrieval and "recall" not in tools:
        return {"retrieval": "Without effect: the agent does not have the tool recall."}
    if not options.retrieval and "recall" in tools:
        return {"retrieval": "The agent has the tool recall; it is kept from it."}
    return {}
