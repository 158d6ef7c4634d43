from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.parsing import (
    BadOutput,
    DegenerateOutput,
    EmptyOutput,
    UnparsableOutput,
    parse_observer_of,
)
from memory.engine.values import ObserverOutput, SectionNumbers, WrittenLine
from tests.memory.engine.replies import DONE, HIGH, at, block, told

A, B = SectionNumbers("a", {1: 10, 2: 11}), SectionNumbers("b", {3: 7})


def of(
    reply: str, *sections: SectionNumbers, **options: object
) -> tuple[ObserverOutput | None, ...]:
    return parse_observer_of(reply, tz=UTC, sections=sections or (A, B), **options)  # type: ignore[arg-type]


def thread(label: str, *lines: str) -> str:
    return "\n".join([f'<thread id="{label}">', *lines, "</thread>"])


def test_each_thread_has_its_own_lines_hints_and_numbers() -> None:
    reply = block(
        thread("b", "* 🔴 from b [#3,1]", "<current-task>", "task of b", "</current-task>"),
        thread("a", "Date: May 8, 2023", "* 🔴 (13:56) from a [#1-3]", "* ✅ done [#2]"),
    )

    a, b = of(reply)

    assert a == ObserverOutput(
        (
            WrittenLine(HIGH, "from a", at(13, 56), (1, 2)),
            WrittenLine(DONE, "done", at(0, 0), (2,)),
        )
    )
    assert b == ObserverOutput((WrittenLine(HIGH, "from b", None, (3,)),), "task of b")


def test_a_thread_missing_from_the_reply_is_none_and_others_stay() -> None:
    assert told(*of(block(thread("a", "* 🔴 from a [#1]")))) == [["from a"], None]


@pytest.mark.parametrize("body", ["(none)", "* (none)", "<observations>(none)</observations>"])
def test_a_thread_said_to_hold_nothing_is_an_output(body: str) -> None:
    assert told(*of(block(thread("a", "* 🔴 from a [#1]"), thread("b", body)))) == [["from a"], []]


@pytest.mark.parametrize("body", ["", "I have nothing to say here."])
def test_a_thread_left_empty_or_in_prose_is_none(body: str) -> None:
    assert told(*of(block(thread("a", "* 🔴 from a [#1]"), thread("b", body)))) == [
        ["from a"],
        None,
    ]


def test_a_thread_that_had_nothing_to_read_needs_no_block() -> None:
    assert told(*of(block(thread("a", "* 🔴 a [#1]")), A, SectionNumbers("b", {}))) == [["a"], []]


def test_threads_may_hold_blocks_of_their_own() -> None:
    reply = "\n".join(
        [thread("a", block("* 🔴 from a [#1]")), thread("b", block("* 🔴 from b [#3]"))]
    )

    assert told(*of(reply)) == [["from a"], ["from b"]]


def test_a_thread_told_twice_is_told_together() -> None:
    reply = block(
        thread("a", "* 🔴 first [#1]", "<current-task>old</current-task>"),
        thread("b", "* 🔴 from b [#3]"),
        thread("A", "* 🔴 second [#2]", "<current-task>new</current-task>"),
    )

    a, b = of(reply)

    assert told(a, b) == [["first", "second"], ["from b"]]
    assert a is not None
    assert a.current_task == "new"


def test_a_thread_that_never_closes_ends_where_the_next_begins() -> None:
    reply = (
        '<observations>\n<thread id="a">\n* 🔴 from a [#1]\n'
        "<thread id='b'>\n* 🔴 from b [#3]\n  and on\n</observations>"
    )

    assert told(*of(reply)) == [["from a"], ["from b\nand on"]]


def test_of_a_thread_cut_off_only_the_list_counts() -> None:
    reply = '<observations>\n<thread id="b">\n* 🔴 from b [#3]\nand then the us'

    assert told(*of(reply)) == [None, ["from b"]]


def test_threads_nobody_asked_about_are_ignored() -> None:
    reply = block(thread("z", "* 🔴 forged [#1]"), thread("a", "* 🔴 from a [#1]"))

    assert told(*of(reply)) == [["from a"], None]


def test_a_thread_tag_within_a_line_or_far_indented_is_text() -> None:
    reply = block(thread("a", '* 🔴 wrote <thread id="b"> [#1]', '    <thread id="b">', "    x"))

    assert told(*of(reply)) == [['wrote <thread id="b">\n<thread id="b">\nx'], None]


def test_where_one_thread_was_asked_about_its_tag_may_be_missing() -> None:
    assert told(*of(block("* 🔴 from a [#1]"), A, SectionNumbers("b", {}))) == [["from a"], []]


@pytest.mark.parametrize(
    "reply", [block("* 🔴 whose? [#1]"), block(thread("z", "* 🔴 z [#1]")), "No."]
)
def test_a_reply_about_no_thread_at_all_cannot_be_read(reply: str) -> None:
    with pytest.raises(UnparsableOutput, match="none of the threads"):
        of(reply)


def test_an_empty_reply_about_threads_is_empty() -> None:
    with pytest.raises(EmptyOutput):
        of(" \n")


def test_equal_hints_in_many_threads_are_no_degeneration() -> None:
    sections = [SectionNumbers(f"t{n}", {n: n}) for n in range(40)]
    hint = (
        "<suggested-response>Wait until the user says how to go on from here.</suggested-response>"
    )
    reply = block(
        *(thread(f"t{n}", f"* 🔴 The user asked for item {n} [#{n}]", hint) for n in range(40))
    )

    outputs = of(reply, *sections)

    assert len({output.suggested_response for output in outputs if output}) == 1
    assert None not in outputs


def test_equal_lines_in_a_thread_are_a_degeneration() -> None:
    with pytest.raises(DegenerateOutput):
        of(block(thread("a", *["* 🔴 The user asked for the same thing again [#1]"] * 100)))


def test_a_loop_within_a_hint_is_a_degeneration() -> None:
    hint = "<current-task>" + "the user wants the very same thing " * 200 + "</current-task>"

    with pytest.raises(DegenerateOutput):
        of(block(thread("a", "* 🔴 a [#1]", hint)))


def test_threads_have_further_texts_of_their_own() -> None:
    reply = block(
        thread("a", "* 🔴 a [#1]", "<mood>good</mood>"), thread("b", "(none)", "<mood>bad</mood>")
    )

    outputs = of(reply, extract=("mood",))

    assert [output and output.extracted for output in outputs] == [
        {"mood": "good"},
        {"mood": "bad"},
    ]


@pytest.mark.parametrize(
    "piece", ['<thread id="', '<thread id="a"', "<thread ", "</thread>", " \t<"]
)
def test_a_hundred_thousand_characters_of_broken_threads_are_read_too(piece: str) -> None:
    reply = piece * (100_000 // len(piece)) + "\n" + thread("b", "* 🔴 last [#3]")

    assert told(*of(reply, SectionNumbers("b", {3: 1}))) == [["last"]]


@pytest.mark.parametrize(
    "tag",
    [
        "<thread id='a'>",
        "<thread id=a>",
        "<THREAD ID = “a” >",
        '  <thread id="a" title="Work: it">',
    ],
)
def test_a_threads_tag_may_be_written_in_other_ways(tag: str) -> None:
    reply = f"<observations>\n{tag}\n* 🔴 from a [#1]\n</Thread >\n</observations>"

    assert told(*of(reply)) == [["from a"], None]


PIECES = st.sampled_from(
    [
        '<thread id="a">',
        '<thread id="b">',
        "</thread>",
        "<observations>",
        "</observations>",
        "* 🔴 (12:00) said [#1,3]",
        "  * -> more [#2]",
        "Date: May 8, 2023",
        "<current-task>",
        "</current-task>",
        "<mood>x</mood>",
        "(none)",
        "prose",
        "",
    ]
)


@given(st.lists(PIECES, max_size=14))
def test_whatever_is_replied_no_thread_has_numbers_of_another(pieces: list[str]) -> None:
    try:
        outputs = of("\n".join(pieces), extract=("mood",))
    except BadOutput:
        return

    assert len(outputs) == 2
    for output, section in zip(outputs, (A, B), strict=True):
        cited = {cite for line in output.lines for cite in line.cites} if output else set()
        assert cited <= set(section.numbers)
