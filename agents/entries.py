"""Name what a conversation's log consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents import words
from agents.branches import Branch
from agents.footers import Footer


@dataclass(frozen=True)
class File:
    """Show a picture or file of a message; without a link it is gone."""

    name: str
    size: str
    link: str
    is_picture: bool
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Said:
    """Show what somebody said, and the files with it.

    ``opens`` marks the first entry of a message, which links lead to; ``turn`` is the number
    of the turn a prompt began, ``footer`` what the request of a reply was.
    """

    template: ClassVar = "said"
    key: str
    position: int
    by: str
    text: str
    at: str
    clock: str
    tokens: str
    memory: str
    files: tuple[File, ...] = ()
    erased: bool = False
    opens: bool = False
    thread: str = ""
    turn: int = 0
    footer: Footer | None = None
    branch: Branch | None = None

    @property
    def speaker(self) -> str:
        """Return who speaks, for screen readers."""
        return "You" if self.by == "user" else "Agent"


@dataclass(frozen=True)
class Tool:
    """Show a tool's call and what it returned; ``status`` tells how it went."""

    template: ClassVar = "tool"
    key: str
    position: int
    tool: str
    arguments: str
    result: str
    status: str
    memory: str
    files: tuple[File, ...] = ()
    opens: bool = False

    @property
    def brief(self) -> str:
        """Return the arguments on one line."""
        return words.first_words(self.arguments, 60)


@dataclass(frozen=True)
class Thought:
    """Show what the model thought before it answered."""

    template: ClassVar = "thought"
    key: str
    position: int
    text: str
    memory: str
    opens: bool = False


@dataclass(frozen=True)
class Gap:
    """Show that time passed between two messages."""

    template: ClassVar = "gap"
    key: str
    at: str
    words: str


@dataclass(frozen=True)
class Ended:
    """Show that a turn ended otherwise than with an answer."""

    template: ClassVar = "ended"
    key: str
    state: str
    words: str
