from __future__ import annotations

from datetime import UTC, datetime

from memory.engine.calls import told_once
from memory.engine.values import Message, MessageKind, Part, PartKind

NOON = datetime(2023, 5, 8, 12, 0, tzinfo=UTC)


def told(*messages: tuple[Part, ...]) -> list[list[str]]:
    stored = [
        Message(position, MessageKind.REQUEST, parts, 1, NOON)
        for position, parts in enumerate(messages)
    ]
    return [[part.text for part in parts] for _, parts in told_once(stored)]


def call(arguments: str, call_id: str = "c1") -> Part:
    return Part(PartKind.CALL, arguments, "search", call_id)


def result(text: str, call_id: str = "c1", kind: PartKind = PartKind.RESULT) -> Part:
    return Part(kind, text, "search", call_id)


def test_a_repeated_call_is_told_at_its_first_place_with_its_last_arguments() -> None:
    assert told((call("{}"),), (call('{"q": 1}'), call(" "))) == [['{"q": 1}'], []]


def test_a_repeated_outcome_is_told_at_its_last_place() -> None:
    failed = result("denied", kind=PartKind.FAILURE)

    assert told((call("{}"),), (result("wait"),), (failed,)) == [["{}"], [], ["denied"]]


def test_outcomes_without_a_call_are_told_once_too() -> None:
    assert told((result("a"),), (result("b"),)) == [[], ["b"]]


def test_an_id_that_is_used_again_after_its_answer_is_another_call() -> None:
    turn = (call("{}"), result("a"))

    assert told(turn, turn) == [["{}", "a"], ["{}", "a"]]


def test_calls_of_different_ids_and_without_one_are_all_told() -> None:
    parts = (call("a", ""), call("a", ""), call("a", "c1"), call("a", "c2"))

    assert told(parts) == [["a"] * 4]


def test_other_parts_stay_as_they_are() -> None:
    parts = (Part(PartKind.USER, "a"), call("b"), Part(PartKind.USER, "c"), call("b"))

    assert told(parts) == [["a", "b", "c"]]
