import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.recordings import Recording, RecordingError, read

SAMPLE: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "What is the cat called?",
    "question_date": "2023/05/30 (Tue) 12:18",
    "answer": "Biscuit",
    "answer_session_ids": ["cat", "dog"],
    "haystack_session_ids": ["dog", "cat"],
    "haystack_dates": ["2023/05/20 (Sat) 02:47", "2023/05/20 (Sat) 01:45"],
    "haystack_sessions": [
        [{"role": "user", "content": "I have a dog."}],
        [
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "My cat is Biscuit.", "has_answer": True},
        ],
    ],
}


def changed(**fields: Any) -> dict[str, Any]:
    return deepcopy(SAMPLE) | fields


def played(tmp_path: Path, sample: dict[str, Any]) -> Recording:
    path = tmp_path / "history.json"
    path.write_text(json.dumps(sample))
    (recording,) = read(path)
    return recording


def test_sessions_are_played_by_date_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    recording = played(tmp_path, SAMPLE)

    assert [
        (recorded.source_id, recorded.message.kind, recorded.message.parts[0].content)
        for recorded in recording.messages
    ] == [
        ("cat:0", "response", "Hello!"),
        ("cat:1", "request", "My cat is Biscuit."),
        ("dog:0", "request", "I have a dog."),
    ]


def test_a_session_that_begins_too_early_waits_for_the_one_before(tmp_path: Path) -> None:
    dates = ["2023/05/20 (Sat) 01:45", "2023/05/20 (Sat) 01:44"]
    long = [{"role": "user", "content": str(n)} for n in range(90)]
    sample = changed(haystack_dates=dates, haystack_sessions=[SAMPLE["haystack_sessions"][0], long])

    messages = played(tmp_path, sample).messages

    assert [recorded.source_id for recorded in messages[-2:]] == ["cat:89", "dog:0"]
    assert messages[-1].at == messages[-2].at == datetime(2023, 5, 20, 1, 45, 29, tzinfo=UTC)


def test_the_question_comes_with_its_time_and_the_marked_messages(tmp_path: Path) -> None:
    recording = played(tmp_path, SAMPLE)
    (question,) = recording.questions

    assert (recording.key, question.text, question.answer, question.category) == (
        "q1",
        "What is the cat called?",
        "Biscuit",
        "single-session-user",
    )
    assert question.at == datetime(2023, 5, 30, 12, 18, tzinfo=UTC)
    assert question.evidence == ("dog:0", "cat:1")


def test_a_question_may_lack_date_answer_and_evidence(tmp_path: Path) -> None:
    bare = {
        key: value
        for key, value in SAMPLE.items()
        if key not in ("question_date", "answer", "answer_session_ids")
    }

    (question,) = played(tmp_path, bare).questions

    assert (question.answer, question.evidence, question.at) == ("", (), None)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"haystack_dates": []}, "are not of the same length"),
        ({"haystack_dates": ["soon", "2023/05/20 01:45"]}, 'session dog: the time is "soon"'),
        ({"haystack_dates": [1, 2]}, 'session dog: "date" is a number'),
        ({"haystack_sessions": [[], {}]}, 'session cat: "messages" is an object'),
        ({"haystack_sessions": [[], [{"role": "user"}]]}, '"content" is missing'),
        ({"haystack_sessions": [["Hi"], []]}, "session dog: message dog:0 is text"),
        (
            {"haystack_sessions": [[{"role": "system", "content": "x"}], []]},
            'message dog:0 is by "system"; expected user or assistant',
        ),
        ({"haystack_session_ids": ["dog", "dog"]}, 'two messages have the id "dog:0"'),
        ({"question_id": ""}, '"question_id" is empty'),
        ({"haystack_sessions": [[], []]}, "it holds no message"),
    ],
)
def test_a_wrong_history_is_refused_by_session(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RecordingError) as caught:
        played(tmp_path, changed(**fields))

    assert problem in caught.value.problem
