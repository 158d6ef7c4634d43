from __future__ import annotations

from datetime import UTC

import pytest

from memory.engine.statements import is_list_line, written

SIZE = 100_000


@pytest.mark.parametrize(
    "line",
    ["* a", "- a", "• a", "1. a", "12) a", "  * a", "🔴 a", "Date: May 8, 2023", "Undated:"],
)
def test_bullets_and_headers_make_a_list(line: str) -> None:
    assert is_list_line(line)


@pytest.mark.parametrize("line", ["a", "", "*", "*a", "-", "2023. a", "1.a", "a * b", "Dated: x"])
def test_other_lines_do_not(line: str) -> None:
    assert not is_list_line(line)


@pytest.mark.parametrize(
    "piece",
    [
        "* [#1,",
        "[#1,2]",
        "[#",
        "1,",
        "1-",
        "🔴",
        "(1",
        "(14:30) ",
        "-> ",
        "**",
        "Date: ",
        "Date: (",
        "\n* x",
        "\nx",
        "\n    x",
        "\n ",
        "    ",
    ],
)
def test_a_hundred_thousand_characters_of_anything_lose_no_line_after_them(piece: str) -> None:
    text = "* first " + piece * (SIZE // len(piece)) + "\n* last [#1]"

    *_, last = written(text.split("\n"), UTC, frozenset({1}))

    assert (last.text, last.cites) == ("last", (1,))
