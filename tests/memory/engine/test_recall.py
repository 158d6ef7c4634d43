"""Test what can be asked of recall, and where a page lies."""

from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.recall import (
    KINDS,
    MOST_WORDS,
    Asked,
    Mode,
    Period,
    Refused,
    Window,
    check,
    check_place,
    guidance,
    mode_of,
    period,
    range_in,
    speaker,
    window,
    words_of,
)
from memory.engine.recalled import BASE
from memory.engine.values import PartKind

BERLIN = ZoneInfo("Europe/Berlin")


def midnight(month: int, day: int) -> datetime:
    return datetime(2026, month, day, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked(mode="search"), "mode is 'search', but it is one of: messages, threads, words."),
        (Asked(anchor="middle"), "anchor is 'middle', but it is one of: start, end."),
        (Asked(detail="all"), "detail is 'all', but it is one of: low, high."),
        (Asked(part_kind="thinking"), "user, text, call, result, attachment."),
        (Asked(page=51), "page is '51', but it goes from -50 to 50. Go on from the last position"),
        (Asked(page=-51), "page is '-51'"),
        (Asked(limit=0), "limit is '0', but it goes from 1 to 20."),
        (Asked(limit=21), "Ask for more with page."),
        (Asked(offset=-1), "offset is '-1', but it counts characters from 0."),
        (Asked(after="2026-03-31"), "Messages are asked for by position."),
        (Asked(thread="all"), 'thread="all" goes with mode="words".'),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(asked: Asked, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        check(asked)
    assert sentence in str(refused.value)


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(Refused) as refused:
        check(Asked(mode="x" * 10_000))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12-37", (12, 37)),
        (" 12 – 37 ", (12, 37)),
        ("12:37", (12, 37)),
        ("12 to 37", (12, 37)),
        ("12", None),
        ("-12", None),
        ("12-37-40", None),
        ("", None),
        ("1-" + "9" * 99, None),
    ],
)
def test_a_range_is_read_as_it_is_written(text: str, expected: tuple[int, int] | None) -> None:
    assert range_in(text) == expected


def test_a_query_without_a_place_means_words() -> None:
    assert mode_of(Asked(query="bees")) is Mode.WORDS
    assert mode_of(Asked(query="bees", cursor=3)) is Mode.MESSAGES
    assert mode_of(Asked(mode="threads", query="bees")) is Mode.THREADS
    check(Asked(query="bees", after="2026-03-31"))


@pytest.mark.parametrize("page", [-50, -1, 0, 1, 50])
@pytest.mark.parametrize("limit", [1, 20])
def test_what_lies_on_the_bounds_is_allowed(page: int, limit: int) -> None:
    check(Asked(page=page, limit=limit))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked(cursor=0), "Position '0' is outside this conversation, whose messages have"),
        (Asked(cursor=31), "the positions 1 to 30"),
        (Asked(first=31, last=40), "Position '31' is outside"),
        (Asked(first=-5, last=-1), "Position '-1' is outside"),
        (Asked(first=10**30), "1000000"),
        (Asked(page=-1), 'Give one as cursor, or begin at the end with anchor="end".'),
        (Asked(page=-1, first=2, last=9), "pages before something need a position"),
    ],
)
def test_a_place_outside_the_thread_is_refused(asked: Asked, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        check_place(asked, 30)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "asked",
    [
        Asked(),
        Asked(cursor=1),
        Asked(cursor=30),
        Asked(first=-7, last=1),
        Asked(first=30, last=10**30),
        Asked(cursor=30, page=-50),
    ],
)
def test_a_range_only_has_to_touch_the_thread(asked: Asked) -> None:
    check_place(asked, 30)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Asked(), Window(1, 30, False, 0, 20)),
        (Asked(page=0), Window(1, 30, False, 0, 20)),
        (Asked(page=2, limit=5), Window(1, 30, False, 5, 5)),
        (Asked(anchor="end", limit=5), Window(1, 30, True, 0, 5)),
        (Asked(anchor="end", page=3, limit=5), Window(1, 30, True, 10, 5)),
        (Asked(first=4, last=9), Window(4, 9, False, 0, 20)),
        (Asked(first=9, last=4), Window(4, 9, False, 0, 20)),
        (Asked(first=4), Window(4, 4, False, 0, 20)),
        (Asked(last=9), Window(9, 9, False, 0, 20)),
        (Asked(first=-4, last=10**30), Window(1, 30, False, 0, 20)),
        (Asked(first=4, last=9, anchor="end"), Window(4, 9, True, 0, 20)),
        (Asked(cursor=7), Window(8, 30, False, 0, 20)),
        (Asked(cursor=7, page=0), Window(8, 30, False, 0, 20)),
        (Asked(cursor=7, page=2), Window(8, 30, False, 20, 20)),
        (Asked(cursor=7, page=-1), Window(1, 6, True, 0, 20)),
        (Asked(cursor=7, page=-3, limit=2), Window(1, 6, True, 4, 2)),
        (Asked(cursor=7, anchor="end"), Window(8, 30, False, 0, 20)),
        (Asked(cursor=7, first=5, last=9), Window(8, 9, False, 0, 20)),
        (Asked(cursor=7, first=5, last=9, page=-1), Window(5, 6, True, 0, 20)),
        (Asked(cursor=7, detail="high"), Window(8, 30, False, 0, 1)),
    ],
)
def test_a_page_lies_where_it_was_asked_for(asked: Asked, expected: Window) -> None:
    assert window(asked, 30) == expected


@given(
    cursor=st.integers(1, 40),
    page=st.integers(-50, 50),
    limit=st.integers(1, 20),
    first=st.none() | st.integers(),
    last=st.none() | st.integers(),
)
def test_a_page_counted_from_a_cursor_lies_on_one_side_of_it_and_in_the_range(
    cursor: int, page: int, limit: int, first: int | None, last: int | None
) -> None:
    asked = Asked(cursor=cursor, page=page, limit=limit, first=first, last=last)
    place = window(asked, 40)
    assert place.low >= 1
    assert place.high <= 40
    assert place.high < cursor if page < 0 else place.low > cursor
    if first is not None and last is not None:
        assert place.low >= min(first, last)
        assert place.high <= max(first, last)


def test_words_are_taken_once_without_the_short_ones() -> None:
    assert words_of("The  Queen of the queen a b") == ["the", "queen"]
    assert len(words_of(" ".join(f"word{n}" for n in range(500)))) == MOST_WORDS
    assert len(words_of("x" * 100_000)[0]) == 100


@pytest.mark.parametrize("query", ["", " ", "a b c"])
def test_a_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(Refused, match="give words of 3 letters or more as query"):
        words_of(query)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Asked(), Period()),
        (Asked(after="2026-03-02"), Period(start=midnight(3, 2))),
        (Asked(before=" 2026-03-02 "), Period(end=midnight(3, 2))),
        (
            Asked(after="2026-03-02T08:00Z"),
            Period(start=datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ),
        (
            Asked(after="2026-03-02", before="2026-03-03"),
            Period(midnight(3, 2), midnight(3, 3)),
        ),
    ],
)
def test_dates_are_days_of_the_users_zone(asked: Asked, expected: Period) -> None:
    assert period(asked, BERLIN) == expected


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "31.03.2026", "0001-01-01", "x" * 999])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"which is no date\. Write it as 2026-03-31\."):
        period(Asked(after=text), BERLIN)


def test_dates_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(Refused, match="before must be the later date"):
        period(Asked(after="2026-03-02", before="2026-03-02"), BERLIN)


@given(st.text(max_size=30))
def test_any_text_as_a_date_is_read_or_refused(text: str) -> None:
    with suppress(Refused):
        assert period(Asked(before=text), BERLIN).start is None


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([PartKind.USER], "User"),
        ([PartKind.ATTACHMENT], "User"),
        ([PartKind.RESULT, PartKind.ATTACHMENT], "Tools"),
        ([PartKind.FAILURE], "Tools"),
        ([PartKind.RESULT, PartKind.USER], "User"),
    ],
)
def test_what_only_tools_said_is_not_the_users(kinds: list[PartKind], expected: str) -> None:
    assert speaker(kinds, by_model=False) == expected
    assert speaker(kinds, by_model=True) == "Assistant"


def test_every_kind_of_part_that_is_shown_can_be_asked_for() -> None:
    assert frozenset().union(*KINDS.values()) == frozenset(BASE)
    assert PartKind.THINKING not in BASE


def test_the_guidance_speaks_of_other_conversations_only_where_they_can_be_reached() -> None:
    here, everywhere = guidance("thread"), guidance("resource")
    assert "Only this conversation can be recalled." in here
    assert "threads" not in here
    assert 'mode="threads"' in everywhere
    assert all("positions" in text and "first and last" in text for text in (here, everywhere))


def test_the_owners_instructions_end_the_guidance() -> None:
    assert guidance("thread", " Quote laws. ") == f"{guidance('thread')}\nQuote laws."
