from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.engine.context import memory_block
from memory.engine.size import Spanned, line_tokens, listed_tokens, sizes
from memory.engine.values import Line, LineKind
from memory.tokens import TOKENIZER, count, count_line

TODAY = date(2026, 6, 1)
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
WORDS = (
    "the user", "said", "that her budget for", "the kitchen", "is €9,000", "oak", "by Friday",
    "wants to move", "(meaning May 7, 2026)", "agreed", "café naïve 東京", "<b>bold</b>", "🔥",
)  # fmt: skip


SEEDS = st.integers(0, 1_000_000)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"])


def statements(chance: Random) -> list[Line]:
    at, found = START, [made(0, "The user spoke of oak and of her budget.", LineKind.HIGH, START)]
    for number in range(1, chance.randint(20, 80)):
        at += chance.choice([timedelta(0), timedelta(minutes=7), timedelta(days=1.3)])
        text = " ".join(chance.choices(WORDS, k=chance.randint(6, 20)))
        if chance.random() < 0.2:
            found.append(made(number, f"-> {text}", LineKind.PLAIN, found[-1].said_at))
            continue
        said = at if chance.random() < 0.9 else at.replace(hour=0, minute=0)
        told = said if chance.random() < 0.95 else None
        found.append(made(number, text, chance.choice(list(LineKind)), told))
    return found


def made(number: int, text: str, kind: LineKind, at: datetime | None) -> Line:
    return Line(number, 1, kind, text, count_line(kind, text, at), at)


def body(lines: list[Line], zone: ZoneInfo) -> str:
    block = memory_block(lines, today=TODAY, tz=zone)
    return block.split("<observations>\n", 1)[1].rsplit("\n</observations>", 1)[0]


@settings(deadline=None)
@given(SEEDS, ZONES)
def test_the_sum_over_lines_is_what_the_written_block_costs(seed: int, name: str) -> None:
    lines, zone = statements(Random(seed)), ZoneInfo(name)
    sent = count(body(lines, zone))

    assert abs(listed_tokens(lines, zone) - sent) <= 0.02 * sent


@given(SEEDS, ZONES)
def test_the_size_at_a_revision_is_that_of_the_lines_it_shows(seed: int, name: str) -> None:
    chance, zone = Random(seed), ZoneInfo(name)
    spans = [
        Spanned(
            line.text,
            line.tokens,
            line.said_at,
            chance.choice([None, *range(1, 9)]),
            chance.choice([None, *range(1, 9)]),
        )
        for line in statements(chance)
    ]

    def shown(number: int) -> list[Spanned]:
        return [
            span
            for span in spans
            if span.since is not None
            and span.since <= number
            and (span.until is None or span.until > number)
        ]

    numbers = [5, 0, 8, 1]
    wanted = {number: listed_tokens(shown(number), zone) for number in numbers}
    assert sizes(spans, numbers, zone) == wanted


def test_a_line_costs_its_bullet_mark_time_and_line_end() -> None:
    said = "The budget is €9,000."

    counted = line_tokens(LineKind.HIGH, said, START, tokenizer=TOKENIZER)

    assert counted == count("* 🔴 (12:34) The budget is €9,000.\n") > count(said)


def test_a_line_nobody_dated_costs_no_time() -> None:
    assert count_line("plain", "oak", None) == count("* oak\n")


def test_nothing_costs_nothing() -> None:
    assert listed_tokens([], UTC) == 0
