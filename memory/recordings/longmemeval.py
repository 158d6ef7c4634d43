"""Read LongMemEval: one question with the history of dated chat sessions behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from memory.recordings.rows import (
    Row,
    Wrong,
    as_object,
    list_of,
    name_of,
    plain_of,
    text_of,
    within,
)
from memory.recordings.sessions import Said, Session, in_order, session_time
from memory.recordings.values import Question, Recording


def read_longmemeval(sample: Row) -> Recording:
    """Return a question's history; a message's id is its session's with its index."""
    key = name_of(sample, "question_id")
    names = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    ids, dates, sessions = (list_of(sample, name) for name in names)
    if not len(ids) == len(dates) == len(sessions):
        raise Wrong(f"{', '.join(names)} are not of the same length")
    messages = in_order(map(_session, ids, dates, sessions))
    return Recording(key, f"LongMemEval {key}", "UTC", messages, (_question(sample),))


def _session(session_id: object, date: object, rows: object) -> Session:
    with within(f"session {session_id}"):
        at = _time(text_of({"date": date}, "date"))
        values = enumerate(list_of({"messages": rows}, "messages"))
        return Session(at, tuple(_said(f"{session_id}:{n}", value) for n, value in values))


def _said(source_id: str, value: object) -> Said:
    row = as_object(value, f"message {source_id}")
    role = text_of(row, "role")
    if role not in ("user", "assistant"):
        raise Wrong(f'message {source_id} is by "{role}"; expected user or assistant')
    return Said(source_id, role == "user", text_of(row, "content"))


def _question(sample: Row) -> Question:
    asked = plain_of(sample, "question_date")
    return Question(
        text=text_of(sample, "question"),
        answer=plain_of(sample, "answer"),
        category=plain_of(sample, "question_type"),
        evidence=tuple(_evidence(sample)),
        at=_time(asked) if asked else None,
    )


def _evidence(sample: Row) -> Iterator[str]:
    """Yield the marked messages of the answer's sessions; all of a session without marks."""
    wanted = list_of(sample, "answer_session_ids", optional=True)
    ids, sessions = sample["haystack_session_ids"], sample["haystack_sessions"]
    for session_id, rows in zip(ids, sessions, strict=True):
        if session_id in wanted:
            marked = [n for n, row in enumerate(rows) if row.get("has_answer")]
            yield from (f"{session_id}:{n}" for n in marked or range(len(rows)))


def _time(text: str) -> datetime:
    bare = re.sub(r"\s*\(\w+\)", "", text)
    return session_time(bare, "%Y/%m/%d %H:%M", "2023/05/20 (Sat) 01:45")
