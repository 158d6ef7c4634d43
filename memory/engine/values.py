"""Define the values the engine reads and returns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

HINTS = ("current-task", "suggested-response", "thread-title")
"""Name the hints as they are tagged, in the order they are written."""


class PartKind(StrEnum):
    """Name what a part of a message holds."""

    USER = "user"
    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    FAILURE = "failure"
    ATTACHMENT = "attachment"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Part:
    """Hold one piece of a message.

    ``text`` is the prompt, the answer, the JSON of a call's arguments, a tool's result
    or error, an attachment's label, or how long nothing was said. ``tool`` and ``call_id``
    belong to CALL, RESULT and FAILURE; ``media_type`` and ``media``, the key of what is attached,
    to ATTACHMENT, and ``tool`` too where a tool returned it.
    """

    kind: PartKind
    text: str
    tool: str = ""
    call_id: str = ""
    media_type: str = ""
    media: str = ""


class MessageKind(StrEnum):
    """Tell what was sent to the model from what the model sent."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Message:
    """Hold one stored message of a thread, with the tokens counted when it was written."""

    position: int
    kind: MessageKind
    parts: tuple[Part, ...]
    tokens: int
    at: datetime

    @property
    def calls(self) -> frozenset[str]:
        """Return the ids of the tool calls this message leaves to be answered.

        A tool that the provider runs itself carries no id: its call is answered where it is made.
        """
        return frozenset(
            part.call_id for part in self.parts if part.kind is PartKind.CALL and part.call_id
        )

    @property
    def returns(self) -> frozenset[str]:
        """Return the ids of the tool calls this message answers."""
        return frozenset(
            part.call_id
            for part in self.parts
            if part.kind in (PartKind.RESULT, PartKind.FAILURE) and part.call_id
        )


class LineKind(StrEnum):
    """Rank a line, or mark it as something completed."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    DONE = "done"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """Hold one statement of the memory, as the Actor and the Reflector see it.

    ``id`` is the row's; ``observation`` the id of the observation or reflection it belongs
    to. A statement nobody dated has no ``said_at``. Positions are the messages it rests on.
    """

    id: Hashable
    observation: Hashable
    kind: LineKind
    text: str
    tokens: int
    said_at: datetime | None = None
    first_position: int | None = None
    last_position: int | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """Hold one statement as a model wrote it; ``cites`` are the numbers it gave as sources."""

    kind: LineKind
    text: str
    said_at: datetime | None = None
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ObserverOutput:
    """Hold what an Observer wrote about a range of messages. A hint not given is empty.

    ``extracted`` holds by name the texts that were asked for besides, as far as they were given.
    """

    lines: tuple[WrittenLine, ...]
    current_task: str = ""
    suggested_response: str = ""
    thread_title: str = ""
    extracted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReflectorOutput:
    """Hold what a Reflector made of a list of lines; ``cites`` are numbers of those lines."""

    lines: tuple[WrittenLine, ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """Hold what is said to the Actor about going on; each is empty when unknown."""

    current_task: str = ""
    suggested_response: str = ""
    thread_title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Hold what one thread brings to a call of the Observer that serves several.

    ``label`` names the thread towards the model; ``hints`` and ``extracted`` are those last
    written for it.
    """

    label: str
    messages: Sequence[Message]
    hints: Hints = Hints()
    extracted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SectionNumbers:
    """Hold the label a thread is printed under, and what the numbers printed in it mean."""

    label: str
    numbers: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Attachment:
    """Hold where a picture or file goes: after which part of the prompt, counted from 0."""

    after: int
    media: str


@dataclass(frozen=True, slots=True)
class ObserverRequest:
    """Hold one call of the Observer, complete: what is sent, and what its numbers mean.

    ``prompt`` is a sequence of user text parts; ``numbers`` maps each short message number
    printed in it to the message's position, in its own thread if there are several; then
    ``sections`` has them thread by thread. ``wanted`` and ``extract`` are the names of the hints
    and of the further texts asked for.
    """

    instructions: str
    prompt: tuple[str, ...]
    numbers: Mapping[int, int] = field(default_factory=dict)
    sections: tuple[SectionNumbers, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    wanted: tuple[str, ...] = HINTS
    extract: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReflectorRequest:
    """Hold one call of the Reflector; ``numbers`` maps each printed number to its line."""

    instructions: str
    prompt: tuple[str, ...]
    target_tokens: int
    level: int
    numbers: Mapping[int, Line] = field(default_factory=dict)
