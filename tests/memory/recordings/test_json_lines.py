import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory.recordings import Recording, RecordingError, read

Row = dict[str, Any]
Write = Callable[..., Path]


def at(second: int) -> str:
    return f"2026-01-08T19:12:{second:02d}+01:00"


def user(second: int, text: str = "Hello", **more: Any) -> Row:
    return {"at": at(second), "user": text, **more}


def assistant(second: int, text: str = "Hello", *calls: Row, **more: Any) -> Row:
    return {"at": at(second), "assistant": text, "calls": list(calls), **more}


def call(call_id: str, tool: str = "clock", **args: Any) -> Row:
    return {"id": call_id, "tool": tool, "args": args}


def results(second: int, *rows: Row) -> Row:
    return {"at": at(second), "results": list(rows)}


def result(call_id: str, content: Any = "noon", tool: str = "clock") -> Row:
    return {"id": call_id, "tool": tool, "content": content}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*rows: Row | str) -> Path:
        path = tmp_path / "talk.jsonl"
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return path

    return write


def refused(path: Path) -> RecordingError:
    with pytest.raises(RecordingError) as caught:
        read(path)
    return caught.value


def only(path: Path) -> Recording:
    (recording,) = read(path)
    return recording


def test_a_user_line_is_a_request_at_its_time(write: Write) -> None:
    (recorded,) = only(write(user(1, "Good evening"))).messages

    moment = datetime(2026, 1, 8, 18, 12, 1, tzinfo=UTC)
    part = UserPromptPart("Good evening", timestamp=moment)
    assert recorded.at == moment
    assert recorded.message == ModelRequest([part], timestamp=moment)


def test_an_assistant_line_is_a_response_with_its_text_before_its_calls(write: Write) -> None:
    path = write(assistant(1, "Let me look.", call("a", zone="UTC")), results(2, result("a")))

    message = only(path).messages[0].message

    assert isinstance(message, ModelResponse)
    assert message.parts == [TextPart("Let me look."), ToolCallPart("clock", {"zone": "UTC"}, "a")]
    assert message.timestamp == datetime(2026, 1, 8, 18, 12, 1, tzinfo=UTC)


def test_an_assistant_may_call_without_a_word(write: Write) -> None:
    path = write(assistant(1, "", call("a")), results(2, result("a")))

    assert only(path).messages[0].message.parts == [ToolCallPart("clock", {}, "a")]


def test_an_assistant_may_leave_out_its_calls(write: Write) -> None:
    path = write({"at": at(1), "assistant": "Hello"})

    assert only(path).messages[0].message.parts == [TextPart("Hello")]


@pytest.mark.parametrize("content", ["text", "", None, 3, 1.5, True, [1, {"a": []}], {"a": None}])
def test_a_result_holds_any_json(write: Write, content: Any) -> None:
    path = write(assistant(1, "", call("a")), results(2, result("a", content)))

    (part,) = only(path).messages[1].message.parts

    assert isinstance(part, ToolReturnPart)
    assert (part.tool_name, part.content, part.tool_call_id) == ("clock", content, "a")


def test_results_may_come_in_several_lines_and_any_order(write: Write) -> None:
    path = write(
        assistant(1, "", call("a"), call("b"), call("c")),
        results(2, result("c"), result("a")),
        results(3, result("b")),
        user(4),
    )

    assert len(only(path).messages) == 4


def test_a_speaker_may_send_several_messages_in_a_row(write: Write) -> None:
    path = write(user(1), user(1), assistant(2), assistant(3))

    kinds = [recorded.message.kind for recorded in only(path).messages]

    assert kinds == ["request", "request", "response", "response"]


def test_the_first_line_may_name_title_and_time_zone(write: Write) -> None:
    recording = only(write({"title": "Tea", "time_zone": "Europe/Berlin"}, user(1)))

    assert (recording.title, recording.time_zone) == ("Tea", "Europe/Berlin")


def test_without_a_first_line_the_file_names_the_conversation(write: Write) -> None:
    recording = only(write(user(1)))

    assert (recording.key, recording.title, recording.time_zone) == ("talk", "talk", "UTC")


def test_source_ids_are_the_given_ones_or_the_numbers_of_the_lines(write: Write) -> None:
    recording = only(write({"title": "Tea"}, user(1), "", user(2, id="greeting"), user(3)))

    assert [recorded.source_id for recorded in recording.messages] == ["2", "greeting", "5"]


def test_blank_lines_are_no_messages(write: Write) -> None:
    assert len(only(write("", "  \t", user(1), "", user(2), "")).messages) == 2


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(write: Write) -> None:
    path = write(user(1, "Grüße\r\nund Küsse"), user(2))
    plain = read(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))

    assert read(path) == plain


def test_a_last_line_without_a_line_end_counts(write: Write) -> None:
    path = write(user(1), user(2))
    path.write_bytes(path.read_bytes().rstrip())

    assert len(only(path).messages) == 2


def test_a_line_of_a_megabyte_is_a_message_like_any_other(write: Write) -> None:
    text = "long, longer " * 80_000

    recording = only(write(user(1, text), user(2)))

    assert len(text) > 1_000_000
    assert recording.messages[0].message.parts[0].content == text
    assert recording.messages[1].source_id == "2"


def test_control_characters_stay_in_the_text(write: Write) -> None:
    text = "bell \x07, escape \x1b[31m, tab \t, nul \x00, separators \u2028 \x85"
    raw = json.dumps(user(2), ensure_ascii=False).replace("Hello", "raw \x07 bell")

    recording = only(write(json.dumps(user(1, text), ensure_ascii=False), raw))

    assert [recorded.message.parts[0].content for recorded in recording.messages] == [
        text,
        "raw \x07 bell",
    ]


def test_equal_times_are_in_order(write: Write) -> None:
    assert len(only(write(user(1), assistant(1))).messages) == 2


def test_times_are_compared_across_offsets(write: Write) -> None:
    later = user(1) | {"at": "2026-01-08T18:12:01Z"}

    assert len(only(write(user(1), later)).messages) == 2


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        ([user(1), '{"at": '], 2, "is not JSON: Expecting value at column"),
        ([user(1), "Hello"], 2, "is not JSON"),
        ([user(1), "[1]"], 2, "the line is a list; expected an object"),
        ([user(1), "3"], 2, "the line is a number; expected an object"),
        ([user(1), "[" * 100_000], 2, "beyond what can be read"),
        (['{"at": 1', user(1)], 1, "is not JSON"),
        ([{"user": "Hello"}], 1, '"at" is missing'),
        ([{"at": 5, "user": "Hello"}], 1, '"at" is a number; expected text'),
        ([user(1) | {"at": "8 January"}], 1, '"at" is "8 January"; expected a time like 2026'),
        ([user(1) | {"at": "2026-01-08T19:12"}], 1, "without a time zone offset"),
        ([user(1) | {"at": "2026-01-08"}], 1, "without a time zone offset"),
        ([user(1) | {"at": "0001-01-01T00:00+14:00"}], 1, "no time in UTC"),
        ([user(2), user(1)], 2, f"the time goes back, from {at(2)} to {at(1)}"),
        ([{"at": at(1)}], 1, 'has none of "user", "assistant", "results"'),
        ([{"at": at(1), "usr": "Hello"}], 1, 'has none of "user"'),
        ([user(1, assistant="Hi")], 1, 'has "user", "assistant" of'),
        ([user(1, name="Ada")], 1, 'a message with "user" has no "name"; it takes at, id, user'),
        ([user(1, "")], 1, '"user" is empty'),
        ([user(1, " \n")], 1, '"user" is empty'),
        ([user(1) | {"user": None}], 1, '"user" is null; expected text'),
        ([assistant(1, " ")], 1, '"assistant" is empty; expected some text, or "calls"'),
        ([assistant(1) | {"calls": {}}], 1, '"calls" is an object; expected a list'),
        ([assistant(1, "", call("a") | {"args": "x"})], 1, '"args" of the call "a" is text'),
        ([assistant(1, "", {"id": "a", "args": {}})], 1, '"tool" is missing'),
        ([assistant(1, "", call("a") | {"why": 1})], 1, 'a call has no "why"'),
        ([user(1, id="x"), user(2, id="x")], 2, 'the id "x" is that of line 1 already'),
        ([user(1), user(2, id="1")], 2, 'the id "1" is that of line 1 already'),
        ([user(1), {"title": "Tea"}], 2, "belong in the first line"),
        ([{"title": "Tea", "by": "Ada"}], 1, 'the first line has no "by"'),
        ([{"title": "Tea"}], 1, "ends without a single message"),
        ([{"time_zone": "Mars/Olympus"}], 1, '"time_zone" is "Mars/Olympus"; expected a name'),
        ([{"time_zone": "../etc/passwd"}], 1, "expected a name like Europe/Berlin"),
        (["{'user': 'Hello'}"], 1, "is not JSON"),
        ([user(1, "\ud83d")], 1, '"user" holds half of a surrogate pair'),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(
    write: Write, rows: list[Row | str], line: int, problem: str
) -> None:
    path = write(*rows)

    error = refused(path)

    assert error.line == line
    assert problem in error.problem
    assert str(error) == f"{path}, line {line}: {error.problem}"


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        (
            [results(1, result("a"))],
            1,
            'no open call has the id "a"; waiting for a result: no call',
        ),
        (
            [assistant(1, "", call("a"), call("b")), results(2, result("c"))],
            2,
            "waiting for a result: a, b",
        ),
        (
            [assistant(1, "", call("a")), results(2, result("a"), result("a"))],
            2,
            'no open call has the id "a"',
        ),
        (
            [assistant(1, "", call("a")), results(2, result("a", tool="recall"))],
            2,
            'the call "a" is of the tool clock, its result of recall',
        ),
        (
            [assistant(1, "", call("a")), user(2)],
            2,
            'the call "a" of clock in line 1 has no result before this message with "user"',
        ),
        (
            [assistant(1, "", call("a")), assistant(2)],
            2,
            'has no result before this message with "assistant"',
        ),
        (
            [assistant(1, "", call("a"), call("b")), results(2, result("a"))],
            2,
            'the call "b" of clock in line 1 has no result before the end of the file',
        ),
        (
            [assistant(1, "", call("a")), results(2, result("a")), assistant(3, "", call("a"))],
            3,
            'the call id "a" was used in line 1 already',
        ),
        ([assistant(1, "", call("a"), call("a"))], 1, 'the call id "a" was used in line 1'),
        ([assistant(1, "", call("a")), results(2)], 2, '"results" is an empty list'),
        (
            [assistant(1, "", call("a")), results(2, {"id": "a", "tool": "clock"})],
            2,
            '"content" is missing',
        ),
        (
            [assistant(1, "", call("a")), results(2, result("a", float("nan")))],
            2,
            '"results" holds what is not JSON',
        ),
    ],
)
def test_calls_and_results_that_do_not_match_are_refused(
    write: Write, rows: list[Row | str], line: int, problem: str
) -> None:
    error = refused(write(*rows))

    assert error.line == line
    assert problem in error.problem


def test_bytes_that_are_no_text_are_refused_by_line(write: Write) -> None:
    path = write(user(1), user(2))
    path.write_bytes(path.read_bytes() + b'{"user": "caf\xe9"}\n')

    error = refused(path)

    assert error.line == 3
    assert "not UTF-8 text (byte 14)" in error.problem


said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
spoken = st.lists(st.tuples(st.booleans(), said, st.integers(0, 10**6)), min_size=1, max_size=8)


@given(spoken)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_said_is_read_as_it_was_said(
    write: Write, spoken: list[tuple[bool, str, int]]
) -> None:
    moment, rows = datetime(2026, 1, 8, tzinfo=UTC), []
    for by_user, text, seconds in spoken:
        moment += timedelta(seconds=seconds)
        rows.append({"at": moment.isoformat(), "user" if by_user else "assistant": text})

    recording = only(write(*rows))

    assert len(recording.messages) == len(rows)
    for row, recorded in zip(rows, recording.messages, strict=True):
        assert recorded.at.isoformat() == row["at"]
        assert recorded.message.parts[0].content == row.get("user", row.get("assistant"))


def test_messages_survive_being_stored(write: Write) -> None:
    path = write(user(1), assistant(2, "Hm", call("a")), results(3, result("a", {"x": [1]})))
    messages = [recorded.message for recorded in only(path).messages]

    assert (
        ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
        == messages
    )
