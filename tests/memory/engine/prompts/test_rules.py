from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.engine.prompts.instructions import (
    LEVELS,
    OBSERVER,
    ONE_THREAD,
    OPTIONAL_BLOCKS,
    REFLECTOR,
    SEVERAL_THREADS,
    SUGGESTION,
    TASK,
    TITLE,
)
from memory.engine.prompts.observer import observer_request
from memory.engine.prompts.reflector import reflector_request
from memory.engine.shorten import Tokenizer
from memory.engine.values import Hints, Line, LineKind, Message, MessageKind, Part, PartKind

DOCUMENT = Path(__file__).parents[4] / "docs" / "prompts.md"
ROW = re.compile(r"\| ([ORL]\d+) \| (.+?) \| (.+) \|")
ROWS = [
    match.groups() for match in map(ROW.fullmatch, DOCUMENT.read_text("utf-8").split("\n")) if match
]
QUOTES = [
    (number, quote)
    for number, _, sentences in ROWS
    for quote in re.findall(r"“([^”]+)”", sentences)
]


@pytest.fixture(scope="module")
def texts(tokenizer: Tokenizer) -> dict[str, str]:
    at = datetime(2023, 5, 8, tzinfo=UTC)
    line = Line(1, 1, LineKind.LOW, "a", 1, at)
    messages = [Message(n, MessageKind.REQUEST, (Part(PartKind.USER, "a"),), 1, at) for n in (1, 2)]
    observer = observer_request(
        messages, previous=[line], hints=Hints("a"), tz=UTC, tokenizer=tokenizer
    )
    reflector = reflector_request([line], target_tokens=1, level=0, tz=UTC, focus="a")
    blocks = (ONE_THREAD, SEVERAL_THREADS, TASK, SUGGESTION, TITLE, OPTIONAL_BLOCKS)
    return {
        "O": "\n".join([OBSERVER, *blocks, observer.prompt[-1]]),
        "R": "\n".join([REFLECTOR, reflector.prompt[-1]]),
        "L": "\n".join(LEVELS),
    }


@pytest.mark.parametrize(("number", "quote"), QUOTES)
def test_each_sentence_of_the_list_stands_in_the_instructions(
    texts: dict[str, str], number: str, quote: str
) -> None:
    assert quote in texts[number[0]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_rule_has_a_sentence(row: tuple[str, str, str]) -> None:
    assert "“" in row[2]


@pytest.mark.parametrize(("letter", "count"), [("O", 66), ("R", 22), ("L", 4)])
def test_the_rules_are_numbered_without_gaps(letter: str, count: int) -> None:
    numbers = [int(number[1:]) for number, *_ in ROWS if number[0] == letter]

    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= count
