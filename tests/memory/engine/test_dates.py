from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.dates import (
    LAPSED,
    annotate,
    gap,
    gap_marker,
    gap_text,
    parse_day,
    relative_day,
    spelled,
)

TODAY = date(2024, 3, 15)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, "today"),
        (1, "yesterday"),
        (2, "2 days ago"),
        (6, "6 days ago"),
        (7, "1 week ago"),
        (13, "1 week ago"),
        (14, "2 weeks ago"),
        (20, "2 weeks ago"),
        (21, "3 weeks ago"),
        (29, "4 weeks ago"),
        (30, "1 month ago"),
        (59, "1 month ago"),
        (60, "2 months ago"),
        (364, "12 months ago"),
        (365, "1 year ago"),
        (729, "1 year ago"),
        (730, "2 years ago"),
    ],
)
def test_a_past_day_is_told_in_the_unit_of_its_distance(days: int, words: str) -> None:
    assert relative_day(TODAY - timedelta(days=days), TODAY) == words


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (1, "tomorrow"),
        (2, "in 2 days"),
        (6, "in 6 days"),
        (7, "in 1 week"),
        (13, "in 1 week"),
        (14, "in 2 weeks"),
        (29, "in 4 weeks"),
        (30, "in 1 month"),
        (59, "in 1 month"),
        (60, "in 2 months"),
        (364, "in 12 months"),
        (365, "in 1 year"),
        (730, "in 2 years"),
    ],
)
def test_a_coming_day_is_told_in_the_unit_of_its_distance(days: int, words: str) -> None:
    assert relative_day(TODAY + timedelta(days=days), TODAY) == words


@pytest.mark.parametrize(
    ("days", "line"),
    [
        (-3, ""),
        (0, ""),
        (1, ""),
        (2, "[2 days later]"),
        (6, "[6 days later]"),
        (7, "[1 week later]"),
        (13, "[1 week later]"),
        (14, "[2 weeks later]"),
        (29, "[4 weeks later]"),
        (30, "[1 month later]"),
        (59, "[1 month later]"),
        (60, "[2 months later]"),
        (365, "[12 months later]"),
        (900, "[30 months later]"),
    ],
)
def test_a_gap_is_marked_from_two_days_on_and_never_in_years(days: int, line: str) -> None:
    assert gap(TODAY, TODAY + timedelta(days=days)) == line


@given(st.dates(), st.dates())
def test_a_day_is_past_or_coming_as_seen_from_today(day: date, today: date) -> None:
    words = relative_day(day, today)

    assert words.endswith(" ago") == ((today - day).days > 1)
    assert words.startswith("in ") == ((day - today).days > 1)


@given(st.dates(date(1000, 1, 1), date(2999, 12, 31)))
def test_a_spelled_day_reads_back(day: date) -> None:
    assert parse_day(spelled(day)) == day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("May 8, 2023", date(2023, 5, 8)),
        ("Dec 4, 2025", date(2025, 12, 4)),
        ("dec. 4, 2025", date(2025, 12, 4)),
        ("December 04 2025", date(2025, 12, 4)),
        ("February 29, 2024", date(2024, 2, 29)),
        ("February 29, 2023", None),
        ("February 30, 2024", None),
        ("June 31, 2023", None),
        ("Foo 3, 2023", None),
        ("Decembe 3, 2023", None),
        ("May 0, 2023", None),
        ("May 8, 0023", None),
        ("May 8, 9999", None),
        ("May 8", None),
        ("2023-05-08", None),
        ("May 8, 2023 and so on", None),
        ("", None),
    ],
)
def test_only_real_days_written_out_are_read(text: str, day: date | None) -> None:
    assert parse_day(text) == day


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("meaning March 12, 2024", "3 days ago"),
        ("estimated March 12, 2024", "3 days ago"),
        ("Meaning: Mar 16, 2024", "tomorrow"),
        ("meaning March 15, 2024", "today"),
        ("meaning March 1-3, 2024", "2 weeks ago"),
        ("meaning March 10 to 20, 2024", "5 days ago"),
        ("meaning August 1 – February 28, 2024", "7 months ago"),
        ("meaning December 30, 2023 - January 2, 2024", "2 months ago"),
        ("estimated early March 2024", "1 week ago"),
        ("estimated mid-March 2024", "today"),
        ("estimated late March 2024", "in 1 week"),
        ("estimated January to February 2024", "1 month ago"),
        ("estimated November - January 2024", "2 months ago"),
        ("estimated March 2024", "this month"),
        ("estimated January 2024", "2 months ago"),
        ("estimated 2024", "this year"),
        ("estimated 2021", "2 years ago"),
        ("meaning 2024-03-12", "3 days ago"),
        ("meaning 12 March 2024", "3 days ago"),
        ("meaning March 12th, 2024", "3 days ago"),
        ("meaning Tuesday, March 12, 2024", "3 days ago"),
        ("meaning Tue 12 Mar 2024", "3 days ago"),
        ("estimated around March 12, 2024", "3 days ago"),
        ("estimated by April 2024", "in 1 month"),
        ("meaning August 1, 2023 – February 28", "7 months ago"),
        ("meaning March 1, 2024 to March 20", "2 weeks ago"),
        ("estimated December 2023 to January 2024", "2 months ago"),
        ("estimated summer 2024", "in 4 months"),
        ("estimated fall of 2023", "5 months ago"),
        ("estimated winter 2023", "2 months ago"),
        ("estimated Q2 2024", "in 2 months"),
        ("estimated 2021-2022", "2 years ago"),
    ],
)
def test_a_marked_date_is_told_as_seen_from_today(written: str, told: str) -> None:
    assert annotate(f"Rex came ({written}).", TODAY) == f"Rex came ({written}; {told})."


@pytest.mark.parametrize(
    "text",
    [
        "Rex came (meaning soon)",
        "Rex came (meaning February 30, 2024)",
        "Rex came (meaning March 9-3, 2024)",
        "Rex came (estimated Smarch 2024)",
        "Rex came (meaning 2024-13-12)",
        "Rex came (meaning 2024-02-30)",
        "Rex came (meaning 31 June 2023)",
        "Rex came (estimated 2024-2021)",
        "Rex came (estimated May 2024 to January 2024)",
        "Rex came (estimated Q5 2024)",
        "Rex came (estimated by the vet)",
        "Rex came (meaning March 12, 2024",
        "Rex came meaning March 12, 2024)",
        "Rex came (meaning (March 12, 2024) or so)",
        "Saw Inception (2010)",
        "Saw it in the issue of (May 2021)",
        "Rex (March 12, 2024) came",
        "",
    ],
)
def test_what_is_no_marked_date_stays_as_it_is(text: str) -> None:
    assert annotate(text, TODAY) == text


def test_a_plain_date_is_told_only_at_the_very_end() -> None:
    assert annotate("Rex came (March 12, 2024).", TODAY) == "Rex came (March 12, 2024; 3 days ago)."
    assert annotate("Rex (March 12, 2024) came", TODAY) == "Rex (March 12, 2024) came"


@pytest.mark.parametrize(
    "intent",
    [
        "will visit",
        "plans to visit",
        "planned to visit",
        "is planning to visit",
        "is looking forward to",
        "is going to visit",
        "intends to visit",
        "wants to visit",
        "needs to visit",
        "hopes to visit",
        "is about to visit",
    ],
)
def test_a_lapsed_plan_likely_happened(intent: str) -> None:
    text = f"User {intent} Rome (meaning March 12, 2024)"

    assert annotate(text, TODAY) == f"{text[:-1]}; 3 days ago, likely already happened)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("User visited Rome (meaning March 12, 2024)", "3 days ago)"),
        ("User will visit Rome (meaning March 15, 2024)", "today)"),
        ("User will visit Rome (meaning March 18, 2024)", "in 3 days)"),
        ("User will visit Rome (meaning March 12-18, 2024)", "3 days ago)"),
        ("User will visit Rome (estimated March 2024)", "this month)"),
        ("User will visit Rome (estimated February 2024)", "4 weeks ago, likely already happened)"),
        ("User's goodwill visit (meaning March 12, 2024)", "3 days ago)"),
        ("User will go\nRex came (meaning March 12, 2024)", "3 days ago)"),
    ],
)
def test_only_a_plan_that_is_wholly_past_likely_happened(text: str, told: str) -> None:
    assert annotate(text, TODAY) == f"{text[:-1]}; {told}"


def test_the_same_date_twice_is_told_twice() -> None:
    text = "A (meaning March 12, 2024)\nwill B (meaning March 12, 2024)"

    assert annotate(text, TODAY) == (
        "A (meaning March 12, 2024; 3 days ago)\n"
        "will B (meaning March 12, 2024; 3 days ago, likely already happened)"
    )


@given(st.text("(meaning May 3, 2024) will\n", max_size=300))
def test_annotating_twice_is_annotating_once(text: str) -> None:
    once = annotate(text, TODAY)

    assert annotate(once, TODAY) == once


@given(st.text(max_size=300))
def test_annotating_only_adds(text: str) -> None:
    annotated = iter(annotate(text, TODAY))

    assert all(character in annotated for character in text)


@pytest.mark.parametrize(
    ("text", "lapsed"),
    [
        ("will visit (meaning August 1, 2023 – February 28)", True),
        ("will visit (meaning August 1, 2023 – March 28, 2024)", False),
        ("will visit (estimated winter 2023)", True),
        ("will visit (estimated Q1 2024)", False),
        ("will visit (estimated 2023-2024)", False),
        ("will visit (estimated 2022-2023)", True),
        ("will visit (estimated early March 2024)", True),
        ("will visit (estimated mid March 2024)", False),
    ],
)
def test_a_plan_for_a_span_lapses_with_its_last_day(text: str, lapsed: bool) -> None:
    assert (LAPSED in annotate(text, TODAY)) is lapsed


MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, ""),
        (0, ""),
        (9 * MINUTE + 59, ""),
        (10 * MINUTE, "10 minutes later"),
        (12 * MINUTE + 29, "12 minutes later"),
        (12 * MINUTE + 31, "13 minutes later"),
        (59 * MINUTE + 45, "1 hour later"),
        (HOUR, "1 hour later"),
        (HOUR + 59, "1 hour later"),
        (HOUR + 119, "1 hour 1 minute later"),
        (2 * HOUR + 5 * MINUTE, "2 hours 5 minutes later"),
        (DAY - 1, "23 hours 59 minutes later"),
        (DAY, "1 day later"),
        (DAY + 5 * HOUR, "1 day 5 hours later"),
        (7 * DAY - 1, "6 days 23 hours later"),
        (7 * DAY, "1 week later"),
        (16 * DAY, "2 weeks 2 days later"),
        (30 * DAY - 1, "4 weeks 1 day later"),
        (30 * DAY, "1 month later"),
        (75 * DAY, "2 months 2 weeks later"),
        (365 * DAY - 1, "12 months later"),
        (365 * DAY, "1 year later"),
        (450 * DAY, "1 year 2 months later"),
        (729 * DAY, "1 year 11 months later"),
        (730 * DAY, "2 years later"),
    ],
)
def test_a_gap_is_told_from_ten_minutes_on_in_two_units(seconds: float, words: str) -> None:
    assert gap_text(seconds) == words


def test_a_gaps_marker_ends_with_the_time_it_ended_at() -> None:
    at = datetime(2026, 3, 2, 14, 5, tzinfo=UTC)

    assert gap_marker(7500, at) == "2 hours 5 minutes later — March 2, 2026, 14:05"
    assert gap_marker(599.9, at) == ""


@given(st.floats(0, 1e11))
def test_every_gap_has_its_words(seconds: float) -> None:
    assert bool(gap_text(seconds)) == (seconds >= 600)
