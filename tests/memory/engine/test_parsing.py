from __future__ import annotations

from datetime import UTC

import pytest

from memory.engine.parsing import (
    BadOutput,
    DegenerateOutput,
    EmptyOutput,
    UnparsableOutput,
    parse_observer,
    parse_reflector,
)
from memory.engine.values import ObserverOutput, WrittenLine
from tests.memory.engine.replies import DONE, HIGH, LOW, MEDIUM, PLAIN, at, block, observed


def test_a_complete_reply_is_read() -> None:
    output = observed(
        "<observations>\n"
        "Date: May 8, 2023\n"
        "* 🔴 (13:56) User adopted a dog named Rex (meaning May 6, 2023) [#1]\n"
        "* 🟡 (14:05) Assistant looked for schools [#3,4]\n"
        "  * -> one in Rotterdam [#3]\n"
        "  * ✅ user enrolled [#4-6]\n"
        "Date: Jun 9, 2023\n"
        "* 🟢 (09:01) User said hello\n"
        "* ✅ (23:59) Rex is trained [#7]\n"
        "* a plain remark [#8]\n"
        "</observations>\n"
        "<current-task>\nPrimary: train Rex\nSecondary: none\n</current-task>\n"
        "<suggested-response>Ask how Rex is.</suggested-response>\n"
        "<thread-title>Dog school</thread-title>\n"
    )

    assert output == ObserverOutput(
        lines=(
            WrittenLine(
                HIGH, "User adopted a dog named Rex (meaning May 6, 2023)", at(13, 56), (1,)
            ),
            WrittenLine(MEDIUM, "Assistant looked for schools", at(14, 5), (3, 4)),
            WrittenLine(PLAIN, "-> one in Rotterdam", at(14, 5), (3,)),
            WrittenLine(DONE, "-> user enrolled", at(14, 5), (4, 5, 6)),
            WrittenLine(LOW, "User said hello", at(9, 1, day=9, month=6), ()),
            WrittenLine(DONE, "Rex is trained", at(23, 59, day=9, month=6), (7,)),
            WrittenLine(PLAIN, "a plain remark", at(0, 0, day=9, month=6), (8,)),
        ),
        current_task="Primary: train Rex\nSecondary: none",
        suggested_response="Ask how Rex is.",
        thread_title="Dog school",
    )


# Nothing, and bad replies


@pytest.mark.parametrize(
    "reply",
    [
        "<observations>(none)</observations>",
        "<observations>\n(none)\n</observations>",
        "<OBSERVATIONS>\n* (None).\n</OBSERVATIONS>",
        "<observations>\n(none)\n</observations>\n<observations>\n</observations>",
    ],
)
def test_nothing_worth_keeping_is_no_failure(reply: str) -> None:
    assert observed(reply) == ObserverOutput(())


def test_hints_are_read_where_nothing_is_worth_keeping() -> None:
    reply = "<observations>(none)</observations>\n<current-task>Wait.</current-task>"

    assert observed(reply) == ObserverOutput((), current_task="Wait.")


@pytest.mark.parametrize("reply", ["", "  \n\t\n", "\x0b"])
def test_an_empty_reply_is_named(reply: str) -> None:
    with pytest.raises(EmptyOutput, match=r"^The reply is empty \(\d+ characters\)\.$"):
        observed(reply)


@pytest.mark.parametrize(
    "reply",
    ["<observations></observations>", "<observations>\n \n</observations>", "<observations>"],
)
def test_an_empty_block_is_named(reply: str) -> None:
    with pytest.raises(EmptyOutput, match="has an empty observations block"):
        observed(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "I have nothing to say about this conversation.",
        "(none)",
        "{}",
        "<observations>\nUser has a dog.\n</observations>",
        "<observations>\nDate: May 8, 2023\n</observations>",
        "<current-task>\n- feed Rex\n</current-task>",
        "Date: May 8, 2023",
        "*\n-\n",
    ],
)
def test_a_reply_without_any_list_is_named(reply: str) -> None:
    with pytest.raises(UnparsableOutput, match="holds no list of observations"):
        observed(reply)


def test_a_reply_that_repeats_itself_is_named() -> None:
    with pytest.raises(DegenerateOutput, match=r"repeats itself in 9\d% of its text"):
        observed(block(*["* 🔴 (14:30) User said it again and again"] * 200))


def test_a_failure_tells_length_and_beginning_in_one_sentence() -> None:
    reply = "Dear\n\x00user, " + "I cannot do that. " * 5

    with pytest.raises(BadOutput) as raised:
        observed(reply)

    assert str(raised.value) == (
        "The reply holds no list of observations (102 characters, beginning “Dear \ufffduser, "
        "I cannot do that. I cannot do that. I cannot do that. I cannot do th”)."
    )


# Without proper tags


def test_a_reply_without_tags_keeps_only_its_list_lines() -> None:
    output = observed(
        "Here is what I saw:\nDate: May 8, 2023\n- one [#1]\nbecause\n* two\n1. three\n2) four\n"
        "• five\n🔴 (14:30) six\nThat is all."
    )

    assert [line.text for line in output.lines] == ["one", "two", "three", "four", "five", "six"]
    assert {line.said_at.date() for line in output.lines if line.said_at} == {at(0, 0).date()}


def test_without_a_closing_tag_only_list_lines_count() -> None:
    output = observed("- chatter\n<observations>\nwell\n* 🔴 (14:30) one [#1]\nand so on\n* tw")

    assert [line.text for line in output.lines] == ["one", "tw"]


def test_a_list_in_a_hint_is_no_observation() -> None:
    output = observed("<observations>\n* one\n<current-task>\n- feed Rex\n</current-task>\n* two")

    assert [line.text for line in output.lines] == ["one", "two"]
    assert output.current_task == "- feed Rex"


def test_a_hint_that_never_closes_is_not_given() -> None:
    output = observed(
        "<current-task>\n- feed\n<observations>\n* one\n</observations>\n<thread-title>Do"
    )

    assert output == ObserverOutput(observed(block("* one")).lines)


def test_several_blocks_are_joined() -> None:
    reply = f"{block('Date: May 8, 2023', '* one')}\nand also\n{block('* two')}\n{block('(none)')}"

    assert [line.text for line in observed(reply).lines] == ["one", "two"]


def test_the_last_hint_of_a_name_counts() -> None:
    first, last = "<thread-title>A dog</thread-title>", "<thread-title>\nA cat\n</thread-title>"
    reply = f"{first}\n{block('* one')}\n{last}"

    assert observed(reply).thread_title == "A cat"


def test_tags_may_be_indented_and_in_capitals() -> None:
    assert [
        line.text for line in observed("  <Observations >\n* one\n\t</OBSERVATIONS>").lines
    ] == ["one"]


def test_a_hint_may_close_at_the_end_of_its_last_line() -> None:
    reply = f"{block('* one')}\n<current-task>Primary: x\nSecondary: y</current-task>"

    assert observed(reply).current_task == "Primary: x\nSecondary: y"


@pytest.mark.parametrize("fence", ["```", "```xml"])
def test_a_fence_around_the_reply_is_nothing(fence: str) -> None:
    assert [x.text for x in observed(f"{fence}\n{block(fence, '* one', '```')}\n```").lines] == [
        "one"
    ]


# The Reflector


def test_a_reflection_cites_the_lines_it_was_made_from() -> None:
    reply = block("Date: May 8, 2023", "* 🔴 (14:30) one [#1-3]", "* ✅ two [#12]")

    output = parse_reflector(reply, tz=UTC, known={1, 2, 3})

    assert output.lines == (
        WrittenLine(HIGH, "one", at(14, 30), (1, 2, 3)),
        WrittenLine(DONE, "two", at(0, 0), ()),
    )


def test_a_reflection_must_keep_something() -> None:
    with pytest.raises(EmptyOutput, match="gives up every line"):
        parse_reflector("<observations>(none)</observations>", tz=UTC, known={1})


@pytest.mark.parametrize(
    ("reply", "failure"),
    [("", EmptyOutput), ("Sure.", UnparsableOutput), ("I go on. " * 900, DegenerateOutput)],
)
def test_a_bad_reflection_is_named(reply: str, failure: type[BadOutput]) -> None:
    with pytest.raises(failure):
        parse_reflector(reply, tz=UTC, known={1})


# Hints not wanted, and further texts


def test_hints_nobody_wants_are_dropped() -> None:
    reply = (
        f"{block('* 🔴 a [#1]')}\n<current-task>t</current-task>\n<thread-title>Dogs</thread-title>"
    )

    output = parse_observer(reply, tz=UTC, known={1}, wanted=("thread-title",))

    assert (output.current_task, output.thread_title) == ("", "Dogs")


def test_a_title_of_one_or_two_characters_is_none() -> None:
    titles = [
        observed(f"{block('* a')}\n<thread-title> {t} </thread-title>") for t in ("ab", "abc")
    ]

    assert [output.thread_title for output in titles] == ["", "abc"]


def test_further_texts_are_taken_out_and_the_last_of_a_name_counts() -> None:
    reply = (
        "<observations>\n* 🔴 a [#1]\n<mood>\n* sad\n</mood>\n</observations>\n"
        "<MOOD>happy</MOOD>\n<other>x</other>"
    )

    output = parse_observer(reply, tz=UTC, known={1}, extract=("mood", "plan"))

    assert [line.text for line in output.lines] == ["a"]
    assert output.extracted == {"mood": "happy"}
