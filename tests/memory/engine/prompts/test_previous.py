from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memory.engine.prompts.previous import HEADER_SHARE, previous_observations
from memory.engine.shorten import Tokenizer
from memory.engine.values import Line, LineKind

NOON = datetime(2023, 5, 8, 12, 0, tzinfo=UTC)
COST = 20
LISTED = 12
"""What bullet, mark, time and a share of a header cost besides the text."""


class FourCharacters:
    def count(self, text: str) -> int:
        return -(-len(text) // 4)

    def clip(self, text: str, limit: int) -> str:
        return text[: limit * 4]


def line(number: int, kind: LineKind = LineKind.LOW, tokens: int = COST - LISTED) -> Line:
    text = f"line {number} ".ljust(tokens * 4, "x")
    return Line(number, 1, kind, text, tokens + LISTED - HEADER_SHARE, said_at=NOON)


def shown(lines: list[Line], budget: int) -> list[str]:
    text = previous_observations(lines, budget=budget, tz=UTC, tokenizer=FourCharacters())
    return re.findall(r"line \d+|\[\d+ observations? left out\]", text)


def test_without_lines_or_budget_nothing_is_shown(tokenizer: Tokenizer) -> None:
    assert previous_observations([], budget=100, tz=UTC, tokenizer=tokenizer) == ""
    assert previous_observations([line(1)], budget=0, tz=UTC, tokenizer=tokenizer) == ""


def test_what_fits_is_shown_whole() -> None:
    assert shown([line(1), line(2)], 2 * COST) == ["line 1", "line 2"]


def test_the_newest_lines_are_kept() -> None:
    assert shown([line(n) for n in range(1, 11)], 3 * COST) == [
        "[7 observations left out]",
        "line 8",
        "line 9",
        "line 10",
    ]


def test_older_important_lines_are_kept_before_the_newest() -> None:
    kinds = {2: LineKind.HIGH, 4: LineKind.MEDIUM, 5: LineKind.DONE}
    lines = [line(n, kinds.get(n, LineKind.LOW)) for n in range(1, 11)]

    assert shown(lines, 4 * COST) == [
        "[1 observation left out]",
        "line 2",
        "[2 observations left out]",
        "line 5",
        "[3 observations left out]",
        "line 9",
        "line 10",
    ]


def test_important_lines_take_no_more_places_than_the_newest() -> None:
    important = [line(n, LineKind.HIGH, tokens=3) for n in range(1, 9)]

    assert shown([*important, line(9, tokens=500), line(10)], 6 * COST) == [
        "[7 observations left out]",
        "line 8",
        "[1 observation left out]",
        "line 10",
    ]


def test_a_line_left_out_alone_is_shown_where_there_is_room() -> None:
    high = LineKind.HIGH
    lines = [line(1, high), line(2, tokens=3), line(3, high), line(4, tokens=48), line(5), line(6)]

    assert shown(lines, 4 * COST + LISTED + 3) == [
        "line 1",
        "line 2",
        "line 3",
        "[1 observation left out]",
        "line 5",
        "line 6",
    ]
    assert shown(lines, 4 * COST + LISTED + 2)[1] == "[1 observation left out]"


def test_where_nothing_fits_only_the_number_is_told() -> None:
    assert shown([line(1), line(2, tokens=500)], 100) == ["[2 observations left out]"]


def test_without_a_limit_everything_is_shown(tokenizer: Tokenizer) -> None:
    lines = [line(n) for n in range(500)]

    assert previous_observations(lines, budget=False, tz=UTC, tokenizer=tokenizer).count("x") > 500


@given(
    st.lists(st.tuples(st.sampled_from(LineKind), st.integers(3, 60)), max_size=30),
    st.integers(0, 400),
)
def test_the_budget_holds_and_no_line_goes_uncounted(
    shapes: list[tuple[LineKind, int]], budget: int
) -> None:
    lines = [line(n, kind, tokens) for n, (kind, tokens) in enumerate(shapes, start=1)]
    tokenizer = FourCharacters()

    text = previous_observations(lines, budget=budget, tz=UTC, tokenizer=tokenizer)

    kept = re.findall(r"line \d+", text)
    hidden = sum(map(int, re.findall(r"\[(\d+) observations? left out\]", text)))
    assert not kept or tokenizer.count(text) <= budget
    assert not text or len(kept) + hidden == len(lines)
    assert not kept or not lines or kept[-1] == f"line {len(lines)}"


def test_stored_counts_that_are_too_low_do_not_break_the_budget(tokenizer: Tokenizer) -> None:
    lines = [Line(n, 1, LineKind.LOW, "word " * 40, 1, NOON) for n in range(50)]

    text = previous_observations(lines, budget=400, tz=UTC, tokenizer=tokenizer)

    assert 0 < text.count("word ") <= 400 * 4 / 5
    assert tokenizer.count(text) <= 400
