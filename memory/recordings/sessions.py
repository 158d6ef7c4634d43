"""Give times to the messages of dated sessions, which have none of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory.recordings.rows import Wrong, request, response
from memory.recordings.values import Recorded


@dataclass(frozen=True, slots=True)
class Said:
    """Hold one message of a session."""

    source_id: str
    by_user: bool
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """Hold the messages that began at one time."""

    at: datetime
    said: tuple[Said, ...]


def session_time(text: str, form: str, example: str) -> datetime:
    """Return a session's time, read as UTC: the files name no time zone."""
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError as error:
        raise Wrong(f'the time is "{text[:40]}"; expected one like "{example}"') from error


def in_order(sessions: Iterable[Session]) -> tuple[Recorded, ...]:
    """Return the messages of sessions by time, those of one session a second apart.

    A session that begins before the one before it has ended waits for its end.
    """
    recorded = tuple(_played(sorted(sessions, key=lambda session: session.at)))
    if not recorded:
        raise Wrong("it holds no message")
    _refuse_repeated(recorded)
    return recorded


def _played(sessions: Iterable[Session]) -> Iterator[Recorded]:
    at = datetime.min.replace(tzinfo=UTC)
    for session in sessions:
        for second, said in enumerate(session.said):
            at = max(at, session.at + timedelta(seconds=second))
            message = request(said.text, at) if said.by_user else response(said.text, [], at)
            yield Recorded(at, message, said.source_id)


def _refuse_repeated(recorded: Iterable[Recorded]) -> None:
    seen: set[str] = set()
    for each in recorded:
        if each.source_id in seen:
            raise Wrong(f'two messages have the id "{each.source_id}"')
        seen.add(each.source_id)
