"""Tell a reply in which a model repeats itself from one that says something."""

from __future__ import annotations

from collections import Counter

SHORTEST_SUSPECT = 2_000
LONGEST_LINE = 50_000

WINDOW = 200
WINDOWS = 50
FEWEST_WINDOWS = 6
WINDOW_REPEATS = 0.4

LINE_CHARS = 24
FEWEST_LINES = 20
LINE_REPEATS = 0.5


def repetition(text: str) -> str:
    """Return how a text is degenerate, as the end of a sentence, or nothing when it is sound.

    Windows find a phrase said over and over; whole lines find a block whose length hides its
    repeats from the windows. Short lines are not counted, since lists may repeat them.
    """
    if len(text) < SHORTEST_SUSPECT:
        return ""
    windows = _windows(text)
    if len(windows) >= FEWEST_WINDOWS and _repeated(windows) > WINDOW_REPEATS:
        return f"repeats itself in {_repeated(windows):.0%} of its text"
    lines = [line.strip() for line in text.split("\n")]
    if max(map(len, lines)) > LONGEST_LINE:
        return f"has a line of {max(map(len, lines))} characters"
    counted = [line for line in lines if len(line) >= LINE_CHARS]
    if len(counted) >= FEWEST_LINES and _repeated(counted) > LINE_REPEATS:
        return f"repeats {_repeated(counted):.0%} of its lines"
    return ""


def _windows(text: str) -> list[str]:
    stride = max(1, len(text) // WINDOWS)
    return [text[at : at + WINDOW] for at in range(0, len(text) - WINDOW + 1, stride)]


def _repeated(pieces: list[str]) -> float:
    """Return which share of the pieces has been seen before."""
    return 1 - len(Counter(pieces)) / len(pieces)
