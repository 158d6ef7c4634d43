"""Read LoCoMo: conversations of two people, in dated sessions, with questions."""

from __future__ import annotations

import re

from memory.recordings.rows import (
    Row,
    Wrong,
    as_object,
    list_of,
    name_of,
    plain_of,
    present,
    text_of,
    within,
)
from memory.recordings.sessions import Said, Session, in_order, session_time
from memory.recordings.values import Question, Recording


def read_locomo(sample: Row) -> Recording:
    """Return a sample's conversation: speaker a is the user, speaker b the assistant."""
    talk = as_object(present(sample, "conversation"), '"conversation"')
    speakers = (name_of(talk, "speaker_a"), name_of(talk, "speaker_b"))
    keys = filter(None, (re.fullmatch(r"session_(\d{1,6})", key) for key in talk))
    numbers = sorted(int(key[1]) for key in keys)
    messages = in_order(_session(talk, number, speakers) for number in numbers)
    ids = {recorded.source_id for recorded in messages}
    questions = [_question(row, ids) for row in list_of(sample, "qa", optional=True)]
    key, title = name_of(sample, "sample_id"), " and ".join(speakers)
    return Recording(key, title, "UTC", messages, tuple(questions))


def _session(talk: Row, number: int, speakers: tuple[str, str]) -> Session:
    key = f"session_{number}"
    with within(key):
        written = text_of(talk, f"{key}_date_time")
        at = session_time(written, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023")
        return Session(at, tuple(_said(value, speakers) for value in list_of(talk, key)))


def _said(value: object, speakers: tuple[str, str]) -> Said:
    row = as_object(value, "a message")
    speaker, source_id, text = name_of(row, "speaker"), name_of(row, "dia_id"), text_of(row, "text")
    if speaker not in speakers:
        raise Wrong(f'{source_id} is by "{speaker}"; expected {" or ".join(speakers)}')
    caption = plain_of(row, "blip_caption")
    words = (f"{speaker}:", text, f"[{caption}]" if caption else "")
    return Said(source_id, speaker == speakers[0], " ".join(filter(None, words)))


def _question(value: object, ids: set[str]) -> Question:
    row = as_object(value, "a question")
    # Published lists of evidence hold several ids in one string, and ids of no message.
    listed = " ".join(map(str, list_of(row, "evidence", optional=True)))
    return Question(
        text=text_of(row, "question"),
        answer=plain_of(row, "answer"),
        category=plain_of(row, "category"),
        evidence=tuple(found for found in re.findall(r"D\d+:\d+", listed) if found in ids),
        at=None,
    )
