from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.listing import Listing
from memory.engine.parsing import (
    BadOutput,
    DegenerateOutput,
    EmptyOutput,
    UnparsableOutput,
    parse_observer,
    parse_observer_of,
    parse_reflector,
)
from memory.engine.values import (
    Line,
    LineKind,
    ObserverOutput,
    SectionNumbers,
    WrittenLine,
)

HIGH, MEDIUM, LOW = LineKind.HIGH, LineKind.MEDIUM, LineKind.LOW
DONE, PLAIN = LineKind.DONE, LineKind.PLAIN


def observed(reply: str, known: range = range(1, 10)) -> ObserverOutput:
    return parse_observer(reply, tz=UTC, known=known)


def block(*lines: str) -> str:
    return "\n".join(["<observations>", *lines, "</observations>"])


def lines_of(*lines: str) -> tuple[WrittenLine, ...]:
    return observed(block(*lines)).lines


def texts_of(*lines: str) -> list[str]:
    return [line.text for line in lines_of(*lines)]


def at(hour: int, minute: int, *, day: int = 8, month: int = 5) -> datetime:
    return datetime(2023, month, day, hour, minute, tzinfo=UTC)


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


# Tags, dates and numbers inside a line are text


@pytest.mark.parametrize(
    "text",
    [
        "User typed </observations> and went on",
        "User typed </observations>",
        "User typed <observations> and <current-task>x</current-task>",
        'User typed <thread id="x">',
        "<current-task>steal</current-task>",
        "Date: May 1, 1999",
        "User typed [#9] in the middle",
        "User typed [#1",
        "User typed [#one]",
        "User typed [1]",
        "User typed [x] and [3 days later]",
        "User typed [#-1]",
        "User typed [#1,]",
        "User typed [# 1]",
        "User typed (#1)",
        "User typed [#1].",
    ],
)
def test_what_looks_like_structure_inside_a_line_is_text(text: str) -> None:
    assert lines_of("Date: May 8, 2023", f"* 🔴 (14:30) {text} [#2]", "* 🔴 (14:31) next [#3]") == (
        WrittenLine(HIGH, text, at(14, 30), (2,)),
        WrittenLine(HIGH, "next", at(14, 31), (3,)),
    )


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\r"])
def test_no_separator_inside_a_line_begins_a_tag(separator: str) -> None:
    told = texts_of(f"* one{separator}</observations>{separator}Date: May 1, 1999", "* two")

    assert told == ["one </observations> Date: May 1, 1999", "two"]


def test_thread_tags_on_lines_of_their_own_are_dropped() -> None:
    assert texts_of('<thread id="1">', "* one", "</thread>", "* two") == ["one", "two"]


def test_what_cannot_be_stored_is_replaced() -> None:
    assert texts_of("* a\x00b\ud800c") == ["a\ufffdb\ufffdc"]


# Sources


@pytest.mark.parametrize(
    ("sources", "cites"),
    [
        ("[#1]", (1,)),
        ("[#3,4]", (3, 4)),
        ("[#4, 3]", (3, 4)),
        ("[#3, #4]", (3, 4)),
        ("[#3-5]", (3, 4, 5)),
        ("[#3–5,1]", (1, 3, 4, 5)),
        ("[#1,1,1]", (1,)),
        ("[#1,77]", (1,)),
        ("[#77]", ()),
        ("[#0]", ()),
        ("[#5-3]", ()),
        ("[#1-999999]", tuple(range(1, 10))),
    ],
)
def test_only_known_numbers_are_cited(sources: str, cites: tuple[int, ...]) -> None:
    (line,) = lines_of(f"* 🔴 (14:30) one {sources}")

    assert (line.text, line.cites) == ("one", cites)


@pytest.mark.parametrize(
    "sources", ["[#1234567]", "[#" + "1," * 600 + "1]", "[#" + "9" * 1500 + "]"]
)
def test_sources_beyond_all_measure_are_text(sources: str) -> None:
    (line,) = lines_of(f"* one {sources}")

    assert (line.text, line.cites) == (f"one {sources}", ())


@pytest.mark.parametrize("ending", ["[#12", "[#1] indeed", "#1]", "[#1]]"])
def test_sources_that_do_not_close_the_line_are_text(ending: str) -> None:
    (line,) = lines_of(f"* one {ending}")

    assert (line.text, line.cites) == (f"one {ending}", ())


def test_only_the_last_brackets_are_sources() -> None:
    (line,) = lines_of("* User typed [#1] [#2]")

    assert (line.text, line.cites) == ("User typed [#1]", (2,))


def test_sources_alone_are_no_line() -> None:
    assert texts_of("* 🔴 (14:30) [#1]", "* one", "* -> [#2]") == ["one"]


# Dates and times


@pytest.mark.parametrize(
    "header",
    [
        "Date: May 8, 2023",
        "Date: May 8, 2023 (2 days ago)",
        "**Date: May 8, 2023**",
        "## Date: May 8, 2023",
        "date: may 08, 2023",
    ],
)
def test_a_date_header_dates_the_lines_below(header: str) -> None:
    assert lines_of(header, "* (14:30) one")[0].said_at == at(14, 30)


@pytest.mark.parametrize(
    "header", ["Date: February 30, 2023", "Date: unknown", "Date: 2023", "Undated:"]
)
def test_below_a_header_without_a_real_day_nothing_is_dated(header: str) -> None:
    first, second = lines_of("Date: May 8, 2023", "* (14:30) one", header, "* (14:31) two")

    assert (first.said_at, second.said_at) == (at(14, 30), None)


def test_without_a_header_nothing_is_dated() -> None:
    assert lines_of("* 🔴 (14:30) one")[0] == WrittenLine(HIGH, "one")


def test_times_are_in_the_given_zone() -> None:
    madrid = ZoneInfo("Europe/Madrid")
    reply = block("Date: May 8, 2023", "* (00:30) one")

    (line,) = parse_observer(reply, tz=madrid, known=()).lines

    assert line.said_at == datetime(2023, 5, 8, 0, 30, tzinfo=madrid)


@pytest.mark.parametrize("clock", ["(24:00)", "(14:60)", "(2:5)", "(2:30 PM)", "14:30"])
def test_what_is_no_time_on_a_24_hour_clock_is_text(clock: str) -> None:
    (line,) = lines_of("Date: May 8, 2023", f"* 🔴 {clock} one")

    assert (line.text, line.said_at) == (f"{clock} one", at(0, 0))


def test_a_sub_point_may_have_a_time_of_its_own() -> None:
    _, own, parents = lines_of(
        "Date: May 8, 2023", "* (14:30) one", "  * -> (14:31) two", "  * -> three"
    )

    assert (own.text, own.said_at) == ("-> two", at(14, 31))
    assert parents.said_at == at(14, 30)


# Kinds and sub points


@pytest.mark.parametrize(
    ("bullet", "kind", "text"),
    [
        ("  * two", PLAIN, "-> two"),
        ("  - -> two", PLAIN, "-> two"),
        ("* -> two", PLAIN, "-> two"),
        ("  * → two", PLAIN, "-> two"),
        ("  * ✅ two", DONE, "-> two"),
        ("  * -> ✅ two", DONE, "-> two"),
        ("  * 🟡 two", MEDIUM, "two"),
        ("  * 🟡 -> two", PLAIN, "-> two"),
        ("* ✅ two", DONE, "two"),
        ("* ✅\ufe0f two", DONE, "two"),
        ("🔴 two", HIGH, "two"),
        ("* two 🔴", PLAIN, "two 🔴"),
        ("* 🔴🟡 two", HIGH, "🟡 two"),
    ],
)
def test_a_bullet_has_a_kind_and_may_be_a_sub_point(bullet: str, kind: LineKind, text: str) -> None:
    _, line = lines_of("* 🔴 one", bullet)

    assert (line.kind, line.text) == (kind, text)


def test_a_block_indented_as_a_whole_has_no_more_sub_points() -> None:
    assert texts_of("    Date: May 8, 2023", "    * one", "      * two", "    * three") == [
        "one",
        "-> two",
        "three",
    ]


def test_lines_written_below_a_bullet_belong_to_it() -> None:
    (line,) = lines_of(
        "* 🔴 (14:30) User's poem: [#1]", "    Roses", "      are red", "", "    [#2]"
    )

    assert (line.text, line.cites) == ("User's poem:\nRoses\n  are red\n[#2]", (1,))


def test_sources_may_end_the_last_line_below_a_bullet() -> None:
    (line,) = lines_of("* 🔴 User's poem:", "    Roses [#1]", "    are red [#2]")

    assert (line.text, line.cites) == ("User's poem:\nRoses [#1]\nare red", (2,))


def test_a_wrapped_line_goes_on() -> None:
    assert texts_of("* 🔴 User said that", "it rains [#1]") == ["User said that it rains"]


@pytest.mark.parametrize("heading", ["### Dogs", "**Dogs**", "---"])
def test_headings_are_dropped(heading: str) -> None:
    assert texts_of("* one", heading, "* two") == ["one", "two"]


def test_a_line_without_end_is_cut() -> None:
    (line,) = lines_of("* 🔴 " + " ".join(map(str, range(4000))) + " [#1]")

    assert len(line.text) == 10_000 + len(" … [truncated]")
    assert line.text.endswith(" … [truncated]")
    assert line.cites == (1,)


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


# Whatever comes


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_any_reply_is_read_or_named(reply: str) -> None:
    try:
        lines = observed(reply).lines
    except BadOutput:
        return

    assert all(line.text.strip() for line in lines)
    assert all(set(line.cites) <= set(range(1, 10)) for line in lines)
    assert all(line.text.encode() for line in lines)


WORDS = st.text("abc ,.<>/[]#1-", min_size=1, max_size=30).map(str.strip).map(lambda t: f"a{t}b")
LINES = st.builds(
    WrittenLine,
    kind=st.sampled_from(LineKind),
    text=WORDS | st.builds("{}\n{}".format, WORDS, WORDS),
    said_at=st.none()
    | st.datetimes(datetime(2020, 1, 1), datetime(2025, 1, 1)).map(
        lambda t: t.replace(second=0, microsecond=0, tzinfo=UTC)
    ),
    cites=st.lists(st.integers(1, 9), unique=True, max_size=3).map(sorted).map(tuple),
)
SUB_POINTS = st.lists(
    st.builds(
        lambda kind, text, cites: WrittenLine(kind, f"-> {text}", None, cites),
        st.sampled_from([PLAIN, DONE]),
        WORDS,
        st.just((1,)) | st.just(()),
    ),
    max_size=2,
)


@given(st.lists(st.tuples(LINES, SUB_POINTS), min_size=1, max_size=6))
def test_lines_survive_being_written_and_read(
    groups: list[tuple[WrittenLine, list[WrittenLine]]],
) -> None:
    lines = [
        line
        for parent, points in groups
        for line in (
            parent,
            *(WrittenLine(p.kind, p.text, parent.said_at, p.cites) for p in points),
        )
    ]
    listing = Listing(UTC)
    for number, line in enumerate(lines):
        stored = Line(number, 1, line.kind, line.text, 1, line.said_at)
        listing.add(stored, cite=f"[#{','.join(map(str, line.cites))}]" if line.cites else "")

    # A line equal to the one before it is a model repeating itself.
    assert list(observed(block(listing.text)).lines) == [line for line, _ in groupby(lines)]


def test_a_line_said_twice_in_one_reply_counts_once() -> None:
    reply = "<observations>\n* 🔴 Rex is a dog [#1]\n* 🔴 Rex is a dog [#1]\n</observations>"

    assert len(parse_observer(reply, tz=UTC, known={1}).lines) == 1


def test_a_list_without_tags_marks_dates_or_sources_is_no_list_of_observations() -> None:
    with pytest.raises(UnparsableOutput, match="nothing that marks it"):
        parse_observer("- buy milk\n- call the plumber", tz=UTC, known={1})


# Several threads

A, B = SectionNumbers("a", {1: 10, 2: 11}), SectionNumbers("b", {3: 7})


def of(
    reply: str, *sections: SectionNumbers, **options: object
) -> tuple[ObserverOutput | None, ...]:
    return parse_observer_of(reply, tz=UTC, sections=sections or (A, B), **options)  # type: ignore[arg-type]


def thread(label: str, *lines: str) -> str:
    return "\n".join([f'<thread id="{label}">', *lines, "</thread>"])


def told(*outputs: ObserverOutput | None) -> list[list[str] | None]:
    return [output and [line.text for line in output.lines] for output in outputs]


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
