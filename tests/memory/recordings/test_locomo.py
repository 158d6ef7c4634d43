import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from memory.recordings import Question, Recording, RecordingError, read

SAMPLE: dict[str, Any] = {
    "sample_id": "talk-7",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_2_date_time": "12:05 am on 9 May, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "Still up?"}],
        "session_10_date_time": "6:00 pm on 1 June, 2023",
        "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "Back again."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kettle"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice.", "blip_caption": None},
            {"speaker": "Ben", "dia_id": "D1:3", "text": "", "blip_caption": "a blue mug"},
        ],
        "session_11_date_time": "6:00 pm on 2 June, 2023",
    },
    "qa": [
        {"question": "What did Ada show?", "answer": "a kettle", "evidence": ["D1:1"]},
        {"question": "When?", "answer": 2023, "category": 2, "evidence": ["D1:1; D2:1", "D"]},
        {"question": "Who?", "adversarial_answer": "Eve", "category": 5, "evidence": ["D9:9"]},
    ],
}


def changed(**talk: Any) -> dict[str, Any]:
    sample = deepcopy(SAMPLE)
    sample["conversation"].update(talk)
    return sample


def played(tmp_path: Path, sample: dict[str, Any]) -> Recording:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([sample]))
    (recording,) = read(path)
    return recording


def refused(tmp_path: Path, sample: dict[str, Any]) -> str:
    with pytest.raises(RecordingError) as caught:
        played(tmp_path, sample)
    return caught.value.problem


def text(message: ModelMessage) -> object:
    return message.parts[0].content


def test_the_first_speaker_is_the_user_and_the_second_the_assistant(tmp_path: Path) -> None:
    first, second = played(tmp_path, SAMPLE).messages[:2]

    assert (first.message.kind, text(first.message)) == ("request", "Ada: Look! [a red kettle]")
    assert (second.message.kind, text(second.message)) == ("response", "Ben: Nice.")


def test_an_image_without_words_is_its_caption(tmp_path: Path) -> None:
    assert text(played(tmp_path, SAMPLE).messages[2].message) == "Ben: [a blue mug]"


def test_sessions_follow_each_other_by_number(tmp_path: Path) -> None:
    ids = [recorded.source_id for recorded in played(tmp_path, SAMPLE).messages]

    assert ids == ["D1:1", "D1:2", "D1:3", "D2:1", "D10:1"]


def test_messages_of_a_session_are_a_second_apart(tmp_path: Path) -> None:
    times = [recorded.at for recorded in played(tmp_path, SAMPLE).messages]

    assert times[:4] == [
        datetime(2023, 5, 8, 13, 56, 0, tzinfo=UTC),
        datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC),
        datetime(2023, 5, 8, 13, 56, 2, tzinfo=UTC),
        datetime(2023, 5, 9, 0, 5, 0, tzinfo=UTC),
    ]


def test_a_conversation_is_named_by_its_sample_and_speakers(tmp_path: Path) -> None:
    recording = played(tmp_path, SAMPLE)

    assert (recording.key, recording.title, recording.time_zone) == (
        "talk-7",
        "Ada and Ben",
        "UTC",
    )


def test_questions_keep_the_evidence_that_exists(tmp_path: Path) -> None:
    assert played(tmp_path, SAMPLE).questions == (
        Question("What did Ada show?", "a kettle", "", ("D1:1",), None),
        Question("When?", "2023", "2", ("D1:1", "D2:1"), None),
        Question("Who?", "", "5", (), None),
    )


@pytest.mark.parametrize(
    ("talk", "problem"),
    [
        ({"speaker_b": ""}, '"speaker_b" is empty'),
        ({"session_1": "none"}, 'session_1: "session_1" is text; expected a list'),
        ({"session_1_date_time": "yesterday"}, 'session_1: the time is "yesterday"; expected one'),
        ({"session_3": []}, 'session_3: "session_3_date_time" is missing'),
        (
            {"session_1": [{"speaker": "Eve", "dia_id": "D1:1", "text": "Hi"}]},
            'session_1: D1:1 is by "Eve"; expected Ada or Ben',
        ),
        ({"session_1": [{"speaker": "Ada", "text": "Hi"}]}, 'session_1: "dia_id" is missing'),
        (
            {"session_2": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Hi"}]},
            'two messages have the id "D1:1"',
        ),
        ({"session_1": [], "session_2": [], "session_10": []}, "it holds no message"),
    ],
)
def test_a_wrong_conversation_is_refused_by_session(
    tmp_path: Path, talk: dict[str, Any], problem: str
) -> None:
    found = refused(tmp_path, changed(**talk))

    assert found.startswith("conversation 1: ")
    assert problem in found
