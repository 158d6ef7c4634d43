from __future__ import annotations

import pytest

from memory.engine.sections import Block, Sections, sections

SIZE = 100_000


def read(text: str) -> Sections:
    return sections(text.split("\n"))


def test_sections_are_told_apart() -> None:
    text = (
        "before\n<observations>\n* one\n</observations>\nbetween\n"
        "<current-task>\na\nb\n</current-task>\nafter"
    )

    assert read(text) == Sections(
        hints={"current-task": "a\nb"},
        blocks=[Block(["* one"], whole=True)],
        rest=["before", "between", "after"],
    )


def test_a_section_inside_a_line_is_none() -> None:
    assert read("a <observations>\nb </observations>").blocks == []


def test_a_block_ends_where_a_line_begins_with_its_tag() -> None:
    text = "<observations>\na </observations>\n</observations> b\nc"

    assert read(text) == Sections({}, [Block(["a </observations>"], whole=True)], ["c"])


def test_a_second_opening_within_a_block_is_dropped() -> None:
    text = "<observations>\na\n<observations>\nb\n</observations>"

    assert read(text).blocks == [Block(["a", "b"], whole=True)]


@pytest.mark.parametrize(
    "piece",
    [
        "<observations>",
        "<observations>\n",
        "</observations>\n",
        "<observations>\n</observations>\n",
        "<current-task>",
        "<current-task>\n",
        "<current-task>\nx\n",
        "<thread-title>\n<observations>\n",
        "<observations",
        "<thread ",
        "<",
        " ",
        "\t<",
        "\n",
    ],
)
def test_a_hundred_thousand_characters_of_anything_lose_no_line_after_them(piece: str) -> None:
    text = piece * (SIZE // len(piece)) + "\n<observations>\n* last\n</observations>"

    assert read(text).blocks[-1].lines[-1] == "* last"
