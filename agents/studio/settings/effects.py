"""Put into sentences what a change would do at once, and about what it would cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from agents import costs, words
from memory.config import MemoryOptions, Phase
from memory.phases import chain
from memory.services.outlook import Outlook
from memory.tiers import TierExceeded

#: About how many tokens a call reads besides what it is about.
INSTRUCTIONS = 2_500
#: About how much is written for each token read.
WRITTEN: dict[Phase, float] = {"observer": 0.12, "reflector": 0.6}


@dataclass(frozen=True)
class Effect:
    """Say what happens at once, if anything, in sentences."""

    sentences: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Tell whether anything happens at once."""
        return bool(self.sentences)


def effect(now: Outlook | None, then: Outlook | None) -> Effect:
    """Return what would be done at once that would not be done anyway."""
    if then is None or (now is not None and now.due == then.due):
        return Effect()
    return Effect(tuple(_sentences(then)))


def _sentences(then: Outlook) -> Iterator[str]:
    for due in then.due:
        tokens = words.tokens(due.tokens)
        match due.verb:
            case "activate":
                parts = f"{due.parts} buffered observation{'s' if due.parts > 1 else ''}"
                yield f"{parts} will be shown, and {tokens} tokens of messages leave the requests."
            case "observe":
                about = _about(then, "observer", due.tokens, due.parts)
                yield f"{tokens} tokens will be observed at once, {about}; the next turn waits."
            case "buffer":
                yield (
                    f"{tokens} tokens will be observed in the background, "
                    f"{_about(then, 'observer', due.tokens, due.parts)}."
                )
            case "activate reflection":
                yield "The reflection that waits will take the place of what it condensed."
            case "reflect" | "buffer reflection":
                when = "at once" if due.verb == "reflect" else "in the background"
                yield (
                    f"{tokens} tokens of observations will be condensed {when}, "
                    f"{_about(then, 'reflector', due.tokens, 1)}."
                )


def _about(then: Outlook, phase: Phase, tokens: int, calls: int) -> str:
    try:
        cost = expected(then.options, phase, then.actor_model, tokens=tokens, calls=calls)
    except TierExceeded as exceeded:
        return f"which fails: {exceeded}"
    return in_words(cost)


def in_words(cost: Decimal | None) -> str:
    """Return an expected cost as the end of a sentence."""
    if cost is None:
        return costs.UNKNOWN
    return f"about {costs.words(cost)}" if cost else "at no cost"


def expected(
    options: MemoryOptions, phase: Phase, actor_model: str, *, tokens: int, calls: int = 1
) -> Decimal | None:
    """Return about what it costs to observe or condense so much; None: not known.

    Raises TierExceeded when there is no tier for it.
    """
    models = chain(options, phase, actor_model, tokens=tokens)
    if not models:
        return None
    shown = options.previous_observer_tokens if phase == "observer" else 0
    read = tokens + calls * (INSTRUCTIONS + int(shown or 0))
    return costs.price(models[0], read, round(tokens * WRITTEN[phase]))
