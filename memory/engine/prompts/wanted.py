"""Put the Observer's instructions together from what is wanted of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.engine.escape import TAGS, clean
from memory.engine.prompts.condensed import CONDENSED
from memory.engine.prompts.instructions import (
    OBSERVER,
    ONE_THREAD,
    OPTIONAL_BLOCKS,
    SEVERAL_THREADS,
    SUGGESTION,
    TASK,
    TITLE,
)
from memory.engine.values import HINTS

Style = Literal["full", "condensed"]

STYLES: dict[Style, str] = {"full": OBSERVER, "condensed": CONDENSED}

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hold what an Observer is asked to write, and how it is told.

    ``extract`` are further texts to write: a name, which becomes a tag, and what to write in
    it. Raises ValueError for a name that is no tag of its own, or a style nobody wrote.
    """

    task: bool = True
    suggestion: bool = True
    title: bool = False
    extract: Sequence[tuple[str, str]] = ()
    style: Style = "full"
    instruction: str = ""

    def __post_init__(self) -> None:
        """Refuse names that could not be told from our own tags, or from each other."""
        if self.style not in STYLES:
            raise ValueError(f"The Observer's prompt is {' or '.join(STYLES)}, not {self.style}.")
        for name in self.names:
            if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
                raise ValueError(
                    f"“{name[:_LONGEST_NAME]}” cannot name a text to extract: use small letters, "
                    f"digits and single hyphens, {_LONGEST_NAME} at most."
                )
            if name in TAGS or self.names.count(name) > 1:
                raise ValueError(f"“{name}” is in use already: give this text another name.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the further texts."""
        return tuple(name for name, _ in self.extract)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return the names of the hints asked for."""
        asked = (self.task, self.suggestion, self.title)
        return tuple(name for name, wanted in zip(HINTS, asked, strict=True) if wanted)

    def instructions(self, *, several: bool) -> str:
        """Return what the Observer is told to do, for one thread or for several."""
        blocks = [
            TASK if self.task else "",
            SUGGESTION if self.suggestion else "",
            *(f"<{name}>\n{clean(text).strip()}\n</{name}>\n" for name, text in self.extract),
            TITLE if self.title else "",
        ]
        asked = "".join(blocks)
        text = f"{STYLES[self.style]}{SEVERAL_THREADS if several else ONE_THREAD}{asked}"
        text = f"{text}{OPTIONAL_BLOCKS}" if asked else text.rstrip("\n")
        added = clean(self.instruction).strip()
        return f"{text}\n\n## From the owner of this memory\n\n{added}" if added else text
