from __future__ import annotations

import random

import pytest

from memory.engine.degenerate import LONGEST_LINE, SHORTEST_SUSPECT, repetition


def prose(characters: int, seed: int = 7) -> str:
    letters = random.Random(seed)
    return "".join(letters.choice("abcdefghij klmno\n") for _ in range(characters))


def digits(characters: int) -> str:
    return "".join(map(str, range(characters)))[:characters]


def test_a_phrase_said_over_and_over_is_degenerate() -> None:
    assert "repeats itself" in repetition("I will now go on. " * 400)


def test_a_block_whose_length_hides_it_from_the_windows_is_found_by_its_lines() -> None:
    block = "".join(
        f"* 🟡 (14:{n:02}) an observation that is number {n:>3} {n * 'x'}\n" for n in range(21)
    )

    assert "lines" in repetition(block * 62)


def test_a_line_without_end_is_degenerate() -> None:
    assert "50001 characters" in repetition(digits(LONGEST_LINE + 1))


def test_a_long_line_that_ends_is_not() -> None:
    assert repetition(digits(LONGEST_LINE)) == ""


def test_short_texts_are_never_degenerate() -> None:
    assert repetition("again " * ((SHORTEST_SUSPECT - 1) // 6)) == ""


def test_short_bullets_may_repeat() -> None:
    letters = random.Random(3)
    choices = [
        "* 🟢 ran tests",
        "* 🟢 read file",
        "* ✅ built it",
        "  * -> passed",
        "* 🟡 fixed lint",
    ]
    bullets = [letters.choice(choices) for _ in range(400)]

    assert repetition("\n".join(bullets)) == ""


def test_different_lines_are_sound() -> None:
    lines = (f"* 🟡 (14:{n % 60:02}) User mentioned {prose(60, n)!r}" for n in range(300))

    assert repetition("\n".join(lines)) == ""


@pytest.mark.parametrize(("copies", "degenerate"), [(50, False), (52, True)])
def test_more_than_half_of_the_lines_must_be_copies(copies: int, degenerate: bool) -> None:
    # The copies stand apart from each other, so that no window sees two in the same place.
    lines = [prose(90 + n % 7, n).replace("\n", " ") for n in range(100 - copies)]
    for n in range(copies):
        lines.insert(n * 2, "this very line is written again and again")

    assert bool(repetition("\n".join(lines))) is degenerate
