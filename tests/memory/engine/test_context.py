from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.context import CONTINUATION, PREAMBLE, memory_block, reminder
from memory.engine.escape import TAGS
from memory.engine.values import Hints, Line, LineKind

TODAY = date(2023, 5, 11)
NOON = datetime(2023, 5, 8, 12, 0, tzinfo=UTC)
END = "\n</observations>\n</memory>"


def line(text: str, at: datetime | None = NOON, kind: LineKind = LineKind.HIGH) -> Line:
    return Line(id=1, observation=1, kind=kind, text=text, tokens=1, said_at=at, pinned=False)


def remembered(*lines: Line, today: date = TODAY) -> str:
    return memory_block(lines, today=today, tz=UTC)


def body(*lines: Line) -> str:
    return remembered(*lines).split("<observations>\n", 1)[1].removesuffix(END)


def test_no_lines_make_no_block() -> None:
    assert remembered() == ""


def test_the_block_tells_what_it_is_and_closes_its_tags() -> None:
    assert remembered(line("User has a dog")) == (
        f"<memory>\n{PREAMBLE}\n<observations>\n"
        "Date: May 8, 2023 (3 days ago)\n* 🔴 (12:00) User has a dog"
        "\n</observations>\n</memory>"
    )


@pytest.mark.parametrize(
    "rule",
    ["name the particulars", "the later one holds", "plan whose date has passed", "latest message"],
)
def test_the_preamble_says_how_to_use_memory(rule: str) -> None:
    assert rule in PREAMBLE


def test_gaps_between_days_are_marked() -> None:
    days = [NOON + timedelta(days=n) for n in (0, 0, 1, 4, 34)]

    assert body(*(line(f"line {n}", at) for n, at in enumerate(days))) == (
        "Date: May 8, 2023 (3 days ago)\n"
        "* 🔴 (12:00) line 0\n"
        "* 🔴 (12:00) line 1\n"
        "Date: May 9, 2023 (2 days ago)\n"
        "* 🔴 (12:00) line 2\n"
        "[3 days later]\n"
        "Date: May 12, 2023 (tomorrow)\n"
        "* 🔴 (12:00) line 3\n"
        "[1 month later]\n"
        "Date: June 11, 2023 (in 1 month)\n"
        "* 🔴 (12:00) line 4"
    )


def test_going_back_in_time_marks_no_gap() -> None:
    assert "later]" not in body(line("new", NOON + timedelta(days=60)), line("old"))


def test_an_undated_line_does_not_hide_a_gap() -> None:
    told = body(line("a"), line("b", None), line("c", NOON + timedelta(days=7)))

    assert told.endswith(
        "Undated:\n* 🔴 b\n[1 week later]\nDate: May 15, 2023 (in 4 days)\n* 🔴 (12:00) c"
    )


def test_a_lapsed_plan_is_told_in_its_line() -> None:
    told = body(line("User will visit Rome (meaning May 10, 2023)"))

    assert told.endswith("Rome (meaning May 10, 2023; yesterday, likely already happened)")


def test_nothing_but_the_relative_dates_changes_from_day_to_day() -> None:
    lines = [line("a"), line("b", NOON + timedelta(days=3))]
    today, tomorrow = remembered(*lines), remembered(*lines, today=TODAY + timedelta(days=1))

    assert (
        today.replace("(3 days ago)", "(4 days ago)").replace("(today)", "(yesterday)") == tomorrow
    )


@pytest.mark.parametrize("tag", TAGS)
def test_tags_in_lines_are_escaped(tag: str) -> None:
    told = body(line(f"a </{tag}> b <{tag} c"), line(f"-> </{tag}>"))

    assert f"a &lt;/{tag}> b &lt;{tag} c" in told
    assert f"</{tag}" not in told


def test_text_in_brackets_stays() -> None:
    assert body(line("[x] done [3 days later] [#1] a->b")).endswith(
        "[x] done [3 days later] [#1] a->b"
    )


HEADING = re.compile(r"Date: \w+ \d+, 20\d\d \([\w ]+\)|\[\d+ \w+ later\]|Undated:")
ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=60)
LINES = st.lists(
    st.builds(
        line,
        text=ANYTHING | ANYTHING.map("-> {}".format) | st.just("will go (meaning May 9, 2023)"),
        at=st.none() | st.integers(-5000, 5000).map(lambda hours: NOON + timedelta(hours=hours)),
        kind=st.sampled_from(LineKind),
    ),
    max_size=6,
)


@given(LINES, LINES)
def test_more_lines_leave_everything_before_them_as_it_was(
    lines: list[Line], more: list[Line]
) -> None:
    before, after = remembered(*lines), remembered(*lines, *more)

    assert after.startswith(before.removesuffix(END))


@given(LINES.filter(bool))
def test_no_text_leaves_the_block_or_begins_a_line_of_its_own(lines: list[Line]) -> None:
    told = remembered(*lines)

    assert told.count("</memory>") == told.count("</observations>") == 1
    rows = [row for row in body(*lines).split("\n") if row and not row.startswith("    ")]
    bullets = [row for row in rows if re.match(r"(?:  )?\*(?: |$)", row)]
    assert len(bullets) == len(lines)
    assert all(HEADING.fullmatch(row) for row in rows if row not in bullets)


# The reminder


def test_the_reminder_holds_hints_and_how_to_go_on() -> None:
    assert reminder(Hints("Train Rex", "Ask about Rex", "Dogs"), remembering=True) == (
        "<reminder>\n"
        "<current-task>Train Rex</current-task>\n"
        "<suggested-response>Ask about Rex</suggested-response>\n"
        f"{CONTINUATION}\n"
        "</reminder>"
    )


def test_there_is_nothing_to_remind_of_without_memory_and_hints() -> None:
    assert reminder(Hints(), remembering=False) == ""
    assert reminder(Hints(" \n", "", "Only a title"), remembering=False) == ""


def test_memory_alone_is_reminded_of() -> None:
    assert reminder(Hints(), remembering=True) == f"<reminder>\n{CONTINUATION}\n</reminder>"


def test_a_hint_alone_is_reminded_of() -> None:
    told = reminder(Hints(suggested_response="Ask"), remembering=False)

    assert told.startswith("<reminder>\n<suggested-response>Ask</suggested-response>\n")


def test_tags_in_hints_are_escaped() -> None:
    told = reminder(Hints("</current-task></reminder>\x00", "x\u2028y"), remembering=True)

    assert "<current-task>&lt;/current-task>&lt;/reminder>\ufffd</current-task>" in told
    assert "x\ny" in told


def test_further_texts_are_told_below_the_hints() -> None:
    told = reminder(
        Hints("Train Rex"),
        remembering=False,
        extracted={"mood": "good </mood></reminder>", "plan": " "},
    )

    assert told.startswith(
        "<reminder>\n<current-task>Train Rex</current-task>\n"
        "<mood>good &lt;/mood>&lt;/reminder></mood>\n"
    )
    assert "<plan>" not in told


def test_hints_nobody_wants_are_not_told() -> None:
    hints = Hints("Train Rex", "Ask about Rex")

    assert "Ask" not in reminder(hints, remembering=True, want_suggestion=False)
    assert "Train" not in reminder(hints, remembering=True, want_task=False)
    assert reminder(hints, remembering=False, want_task=False, want_suggestion=False) == ""


# Ranges and recalling


def resting(text: str, first: int | None, last: int | None, *, of: int = 1) -> Line:
    return Line(1, of, LineKind.HIGH, text, 1, NOON, first, last)


def ranged(*lines: Line, **options: object) -> list[str]:
    block = memory_block(lines, today=TODAY, tz=UTC, ranges=True, **options)  # type: ignore[arg-type]
    return block.split("<observations>\n", 1)[1].removesuffix(END).split("\n")[1:]


def test_each_line_names_its_messages_unless_the_line_above_does() -> None:
    told = ranged(
        resting("a", 12, 37),
        resting("-> b", 12, 37),
        resting("c", 40, 40),
        resting("d", None, None),
        resting("e\nmore", 40, 40),
    )

    assert told == [
        "* 🔴 (12:00) a [messages 12-37]",
        "  * 🔴 -> b",
        "* 🔴 (12:00) c [message 40]",
        "* 🔴 (12:00) d",
        "* 🔴 (12:00) e [message 40]",
        "    more",
    ]


def test_messages_of_another_thread_are_named_with_it() -> None:
    told = ranged(resting("a", 1, 2), resting("b", 1, 2, of=7), threads={7: "0197-ab]\n<memory>"})

    assert told == [
        "* 🔴 (12:00) a [messages 1-2]",
        "* 🔴 (12:00) b [messages 1-2 of 0197-abmemory]",
    ]


def test_recalling_is_explained_between_the_preamble_and_the_observations() -> None:
    block = memory_block(
        [line("a")], today=TODAY, tz=UTC, recall_guidance=" Recall when it pays.\n"
    )

    assert f"{PREAMBLE}\nRecall when it pays.\n<observations>\n" in block


def test_recalling_is_explained_even_when_nothing_is_remembered() -> None:
    block = memory_block([], today=TODAY, tz=UTC, recall_guidance="Recall when it pays.")

    assert block == "<memory>\nRecall when it pays.\n</memory>"


def test_with_ranges_too_more_lines_leave_everything_before_them() -> None:
    lines = [resting(str(n), n // 2, n) for n in range(6)]
    before, after = (
        memory_block(some, today=TODAY, tz=UTC, ranges=True) for some in (lines[:4], lines)
    )

    assert after.startswith(before.removesuffix(END))
