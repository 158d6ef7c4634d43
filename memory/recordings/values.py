"""Define what a recording is, and how a file that holds none is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic_ai.messages import ModelMessage


class RecordingError(ValueError):
    """Say which file, which line (None: the whole file) and what is wrong with it."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        place = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Hold one message, the time it was said, and the id its source gives it.

    A JSON line without an id is named by its number in the file. Source ids are unique
    within a recording.
    """

    at: datetime
    message: ModelMessage
    source_id: str


@dataclass(frozen=True, slots=True)
class Question:
    """Hold a question about a conversation; ``evidence`` are source ids of its messages."""

    text: str
    answer: str
    category: str
    evidence: tuple[str, ...]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Recording:
    """Hold one conversation; ``key`` names it within its file, and its times never go back."""

    key: str
    title: str
    time_zone: str
    messages: tuple[Recorded, ...]
    questions: tuple[Question, ...] = ()
