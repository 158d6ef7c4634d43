"""Write the Reflector's request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from memory.engine.escape import clean, escape
from memory.engine.listing import Listing
from memory.engine.prompts.instructions import LEVELS, REFLECTOR
from memory.engine.values import Line, ReflectorRequest

HIGHEST_LEVEL = len(LEVELS) - 1
MOST_RAISES = 3

_EASY_GOING = ("gemini-2.5-flash",)
"""Models that hardly condense unless they are pressed."""


def start_level(model_name: str, *, manual: bool = False) -> int:
    """Return the level to begin at: 1, 2 for a model that needs pressing, 0 for a person's wish."""
    if manual:
        return 0
    return 2 if any(name in model_name.lower() for name in _EASY_GOING) else 1


def last_level(start: int) -> int:
    """Return the level after which no harder one is tried."""
    return min(HIGHEST_LEVEL, start + MOST_RAISES)


def reflector_request(
    lines: Sequence[Line],
    *,
    target_tokens: int,
    level: int,
    tz: tzinfo,
    focus: str = "",
    pinned: Sequence[Line] = (),
    instruction: str = "",
) -> ReflectorRequest:
    """Return the request to condense lines below ``target_tokens``.

    ``level`` says how hard to press, from 0 (no guidance) to 4; ``focus`` is what a person
    asks this reflection to mind, ``instruction`` what the memory's owner adds to ours.
    ``pinned`` lines are shown as standing beside the reply; they have no numbers. Raises
    ValueError for another level.
    """
    if not 0 <= level <= HIGHEST_LEVEL:
        raise ValueError(f"A reflection's level is 0 to {HIGHEST_LEVEL}, not {level}.")
    listing = Listing(tz)
    for number, line in enumerate(lines, start=1):
        listing.add(line, cite=f"[#{number}]")
    standing = _standing(pinned, tz)
    return ReflectorRequest(
        instructions=_instructions(instruction),
        prompt=(
            *([standing] if standing else []),
            f"<lines>\n{listing.text}\n</lines>",
            _task(target_tokens, level, focus),
        ),
        target_tokens=target_tokens,
        level=level,
        numbers=dict(enumerate(lines, start=1)),
    )


def _instructions(instruction: str) -> str:
    added = clean(instruction).strip()
    return f"{REFLECTOR}\n\n## From the owner of this memory\n\n{added}" if added else REFLECTOR


def _standing(pinned: Sequence[Line], tz: tzinfo) -> str:
    listing = Listing(tz)
    for line in pinned:
        listing.add(line)
    return f"<pinned>\n{listing.text}\n</pinned>" if pinned else ""


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
