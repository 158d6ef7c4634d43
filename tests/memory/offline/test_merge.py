"""Test reflecting by rules, from the engine's request to the engine's parser."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.engine.parsing import parse_reflector
from memory.engine.prompts.reflector import HIGHEST_LEVEL, reflector_request
from memory.engine.values import Line, LineKind, ReflectorOutput
from memory.offline.extract import estimate
from memory.offline.merge import reflect

BEGIN = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
_THINGS = "kayak tent piano violin bicycle canoe lantern compass telescope anvil"
THINGS = _THINGS.split()


def line(number: int, text: str, kind: LineKind = LineKind.HIGH, days: int = 0) -> Line:
    return Line(number, number, kind, text, estimate(text), BEGIN + timedelta(days=days))


def bought(count: int) -> list[Line]:
    return [
        line(i, f"User: bought {THINGS[i % 10]} number {i} May {i % 28 + 1}, 2023", days=i // 3)
        for i in range(1, count + 1)
    ]


def reflected(lines: list[Line], target: int, level: int = 1) -> ReflectorOutput:
    request = reflector_request(lines, target_tokens=target, level=level, tz=UTC)
    reply = reflect("\n".join(request.prompt))
    return parse_reflector(reply, tz=UTC, known=request.numbers)


def size(output: ReflectorOutput) -> int:
    return sum(estimate(written.text) for written in output.lines)


@pytest.mark.parametrize("target", [40, 100, 300])
def test_a_reflection_stays_strictly_below_its_target(target: int) -> None:
    assert 0 < size(reflected(bought(60), target)) < target


def test_a_higher_level_keeps_less() -> None:
    sizes = [size(reflected(bought(60), 300, level)) for level in range(HIGHEST_LEVEL + 1)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_what_is_kept_keeps_its_source_and_its_day() -> None:
    lines = bought(30)

    for written in reflected(lines, 120).lines:
        [source] = [lines[number - 1] for number in written.cites]
        assert written.said_at is not None
        assert source.said_at is not None
        assert written.said_at.date() == source.said_at.date()


def test_a_repeat_goes_before_anything_that_is_said_once() -> None:
    same = [line(i, "User: bought kayak Porto") for i in range(1, 7)]
    lines = [*same, line(7, "User: sister Ann lives Rome"), line(8, "User: plays violin evenings")]

    told = " ".join(written.text for written in reflected(lines, 28).lines)

    assert "Ann" in told
    assert "violin" in told


def test_low_priority_goes_first() -> None:
    lines = [
        line(1, "User: ordered canoe Leiden", LineKind.LOW),
        line(2, "User: ordered piano Geneva", LineKind.HIGH),
    ]

    [written] = reflected(lines, 12).lines

    assert "piano" in written.text


def test_a_newer_favourite_takes_the_place_of_the_older() -> None:
    lines = [
        line(1, "User: favourite colour blue"),
        line(2, "User: favourite colour green", days=9),
    ]

    told = " ".join(written.text for written in reflected(lines, 500).lines)

    assert "green" in told
    assert "blue" not in told


def test_a_sub_point_keeps_the_subject_of_the_line_above_it() -> None:
    lines = [line(1, "Kim: bought kayak Porto"), line(2, "-> plays violin", LineKind.PLAIN)]

    output = reflected(lines, 500)

    assert [written.text for written in output.lines] == [
        "Kim: bought kayak Porto",
        "-> plays violin",
    ]


def test_a_target_nothing_meets_still_leaves_the_line_worth_most() -> None:
    assert len(reflected(bought(10), 1).lines) == 1


def test_the_same_lines_give_the_same_reflection() -> None:
    assert reflected(bought(40), 150) == reflected(bought(40), 150)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=80).filter(str.strip), min_size=1, max_size=8),
    st.integers(1, 400),
)
def test_no_lines_are_ever_condensed_to_nothing(texts: list[str], target: int) -> None:
    lines = [line(i, text) for i, text in enumerate(texts, 1)]

    assert reflected(lines, target).lines
