"""Write the Reflector's request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from memory.engine.escape import clean, escape
from memory.engine.listing import Listing
from memory.engine.prompts.instructions import LEVELS, REFLECTOR
from memory.engine.values import Line, ReflectorRequest

HIGHEST_LEVEL = len(LEVELS) - 1


def reflector_request(
    lines: Sequence[Line], *, target_tokens: int, level: int, tz: tzinfo, focus: str = ""
) -> ReflectorRequest:
    """Return the request to condense lines below ``target_tokens``.

    ``level`` says how hard to press, from 0 (no guidance) to 4; ``focus`` is what a person
    asks this reflection to mind. Raises ValueError for another level.
    """
    if not 0 <= level <= HIGHEST_LEVEL:
        raise ValueError(f"A reflection's level is 0 to {HIGHEST_LEVEL}, not {level}.")
    listing = Listing(tz)
    for number, line in enumerate(lines, start=1):
        listing.add(line, cite=f"[#{number}]")
    return ReflectorRequest(
        instructions=REFLECTOR,
        prompt=(f"<lines>\n{listing.text}\n</lines>", _task(target_tokens, level, focus)),
        target_tokens=target_tokens,
        level=level,
        numbers=dict(enumerate(lines, start=1)),
    )


def _task(target_tokens: int, level: int, focus: str) -> str:
    paragraphs = [
        "The lines end here. Rewrite them now, in the form your instructions give. Your whole "
        f"reply must stay below {target_tokens} tokens, about {target_tokens * 3 // 4} words.",
        LEVELS[level],
        _focus(focus),
    ]
    return "<instructions>\n{}\n</instructions>".format("\n\n".join(filter(None, paragraphs)))


def _focus(focus: str) -> str:
    text = escape(clean(focus).strip())
    return f"Mind this in particular, as the owner of this memory asks: {text}" if text else ""
