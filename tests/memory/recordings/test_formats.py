import gzip
import json
from pathlib import Path

import pytest

from memory.recordings import RecordingError, read

LINE = json.dumps({"at": "2026-01-08T19:12:00+01:00", "user": "Hello"})
LOCOMO = {
    "sample_id": "talk",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Hi"}],
    },
}


def refused(path: Path) -> RecordingError:
    with pytest.raises(RecordingError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_document_is_known_however_it_is_laid_out(
    tmp_path: Path, indent: int | None, wrapped: bool
) -> None:
    path = tmp_path / "talk.txt"
    path.write_text("\n" + json.dumps([LOCOMO] if wrapped else LOCOMO, indent=indent))

    assert [recording.title for recording in read(path)] == ["Ada and Ben"]


@pytest.mark.parametrize("content", [LINE, json.dumps(LOCOMO)])
def test_a_gzipped_file_reads_like_the_plain_one(tmp_path: Path, content: str) -> None:
    plain, packed = tmp_path / "talk.jsonl", tmp_path / "talk.jsonl.gz"
    plain.write_text(content)
    packed.write_bytes(gzip.compress(content.encode()))

    assert read(packed) == read(plain)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused_with_what_was_expected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(content)

    error = refused(path)

    assert str(error).startswith(f"{path}: the file is empty; expected JSON lines such as")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "the list is empty"),
        ("[3]", "conversation 1: it is a number; expected an object"),
        (json.dumps([LOCOMO, {"talk": 1}]), "conversation 2: has neither conversation nor"),
        ('["\\ud83d"', "is not JSON"),
        ("[" * 100_000, "beyond what can be read"),
    ],
)
def test_a_document_that_is_no_conversation_is_refused(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "talk.json"
    path.write_text(content)

    assert problem in refused(path).problem


def test_a_broken_document_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text('[\n {"conversation": {}},\n oops\n]')

    error = refused(path)

    assert (error.line, error.problem) == (3, "is not JSON: Expecting value at column 2")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.jsonl"

    assert str(refused(path)) == f"{path}: cannot be read: No such file or directory"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path).problem


@pytest.mark.parametrize("cut", [15, -4])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "talk.jsonl.gz"
    path.write_bytes(gzip.compress(LINE.encode() * 1000)[:cut])

    assert "the gzip file is damaged" in refused(path).problem
