"""Describe the steps of a scenario, as YAML has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Letter = Literal["A", "B", "C", "D"]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
Probe = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=500)]


class Part(BaseModel):
    """Hold what YAML says; what nobody knows is wrong."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True
    )


class Step(Part):
    """Describe one step; ``name`` is its key in YAML, ``short`` the field a bare value fills.

    ``asks`` tells whether it has a model asked.
    """

    name: ClassVar[str]
    short: ClassVar[str] = ""
    asks: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: Any) -> Any:
        if given is None:
            return {}
        return {cls.short: given} if cls.short and not isinstance(given, Mapping) else given

    @property
    def letters(self) -> Sequence[str]:
        """Return the panes the step names."""
        named = (getattr(self, name, None) for name in ("pane", "by"))
        return [each for each in named if each]

    def written(self) -> dict[str, Any]:
        """Return the step as YAML has it."""
        return {self.name: self.model_dump(mode="json", exclude_defaults=True) or None}


class Say(Step):
    """Send a message in a pane."""

    name = "say"
    asks = True
    pane: Letter
    text: Words


class Broadcast(Step):
    """Send one message in several panes, in all of them unless some are named."""

    name, short = "broadcast", "text"
    asks = True
    text: Words
    panes: tuple[Letter, ...] = ()
    at_once: bool = False

    @property
    def letters(self) -> Sequence[str]:
        """Return the panes the step names."""
        return self.panes


class Wait(Step):
    """Wait until nothing is answered, observed or reflected any more."""

    name, short = "wait", "seconds"
    asks = True
    seconds: float = Field(60, gt=0, le=600)


class Observe(Step):
    """Observe all that can be, and show it."""

    name, short = "observe", "pane"
    asks = True
    pane: Letter


class Buffer(Step):
    """Observe ahead; nothing of it is shown yet."""

    name, short = "buffer", "pane"
    asks = True
    pane: Letter


class Activate(Step):
    """Show what is buffered."""

    name, short = "activate", "pane"
    pane: Letter


class Reflect(Step):
    """Condense all lines that may be."""

    name, short = "reflect", "pane"
    asks = True
    pane: Letter


class Edit(Step):
    """Give the first visible line that contains a text another one."""

    name = "edit"
    pane: Letter
    line: Words
    text: Words


class Note(Step):
    """Write a note into a pane's memory."""

    name = "note"
    pane: Letter
    text: Words


# An Actor that says nothing is one that fails: its answer cannot be empty.
AtWork = Literal["works", "fails", "slow"]
InBackground = Literal["works", "fails", "empty", "slow"]


class Fill(Step):
    """Store messages of filler text; no model is asked."""

    name = "fill"
    pane: Letter
    messages: int = Field(20, ge=1, le=500)


class Rest(Step):
    """Let so many minutes pass for all panes, by moving what happened into the past."""

    name, short = "rest", "minutes"
    minutes: float = Field(gt=0, le=366 * 24 * 60)


class Switch(Step):
    """Have the offline model of a pane fail, say nothing or be slow, or work again."""

    name = "switch"
    PARTS: ClassVar = ("actor", "observer", "reflector")
    pane: Letter
    actor: AtWork | None = None
    observer: InBackground | None = None
    reflector: InBackground | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not any(self.parts.values()):
            raise ValueError(f"name at least one of {', '.join(self.PARTS)}")
        return self

    @classmethod
    def choices(cls, part: str) -> tuple[str, ...]:
        """Return what a part can be told to do."""
        return get_args(AtWork if part == "actor" else InBackground)

    @property
    def parts(self) -> dict[str, str]:
        """Return what each part named is to do."""
        return {part: getattr(self, part) for part in self.PARTS if getattr(self, part)}


class Expect(Step):
    """Say what a pane's next request must be like."""

    name = "expect"
    CHECKS: ClassVar = ("isolated", "shared", "contains", "lacks")
    pane: Letter
    isolated: Probe | None = None
    shared: Probe | None = None
    contains: Probe | None = None
    lacks: Probe | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(getattr(self, check) is not None for check in self.CHECKS) != 1:
            raise ValueError(f"name exactly one of {', '.join(self.CHECKS)}")
        return self

    @property
    def check(self) -> tuple[str, str]:
        """Return what is checked, and of which text."""
        found = ((check, getattr(self, check)) for check in self.CHECKS)
        return next((check, text) for check, text in found if text is not None)


class Collide(Step):
    """Have the pane's person give one line two texts at the same instant: one must be refused."""

    name = "collide"
    pane: Letter
    line: Words
    texts: tuple[Words, Words]


class Crash(Step):
    """Let the process that observes a pane die while it waits for its model."""

    name, short = "crash", "pane"
    pane: Letter


class Check(Step):
    """Look into a pane's memory: nothing lost, doubled or out of order, one at a time."""

    name, short = "check", "pane"
    pane: Letter


class Bleed(Step):
    """Say that a pane must not go on with what another conversation is at."""

    name = "bleed"
    pane: Letter
    by: Letter


KINDS: dict[str, type[Step]] = {kind.name: kind for kind in Step.__subclasses__()}
