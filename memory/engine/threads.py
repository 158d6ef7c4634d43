"""Find the threads of a reply that speaks of several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# A line indented further is text that was kept verbatim.
_INDENT = "[ \t]{0,3}"
_OPENING = re.compile(
    rf"{_INDENT}<thread[ \t]{{1,8}}id[ \t]{{0,8}}=[ \t]{{0,8}}"
    r"[\"'“]?(?P<label>[^\"'“”<>\s]{1,100})(?:[\"'”]?[ \t]{0,8}/?>|[\"'”][ \t][^<>]{0,200}>)",
    re.IGNORECASE,
)
_CLOSING = re.compile(rf"{_INDENT}</thread[ \t]{{0,8}}>", re.IGNORECASE)
_END = "</thread>"
_OBSERVATIONS_END = re.compile(rf"{_INDENT}</observations[ \t]{{0,8}}>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Thread:
    """Hold the lines written about a thread; one that was cut off is not ``whole``."""

    label: str
    lines: list[str]
    whole: bool


def threads(lines: Sequence[str]) -> list[Thread]:
    """Return the threads of a reply given line by line, in order.

    Only a tag that begins a line opens or closes a thread. One that never closes ends where
    the next begins.
    """
    starts = [(at, match) for at, line in enumerate(lines) if (match := _OPENING.match(line))]
    if not starts:
        return []
    ends = [*(at for at, _ in starts[1:]), len(lines)]
    return [
        _thread(match, lines[at:end], last=end == len(lines))
        for (at, match), end in zip(starts, ends, strict=True)
    ]


def _thread(opening: re.Match[str], lines: Sequence[str], *, last: bool) -> Thread:
    first = lines[0][opening.end() :]
    label = opening["label"].lower()
    if first.lower().endswith(_END):
        return Thread(label, [first[: -len(_END)]], whole=True)
    body = [first]
    for line in lines[1:]:
        if _CLOSING.match(line):
            return Thread(label, body, whole=True)
        body.append(line)
    closed = not last or any(_OBSERVATIONS_END.match(line) for line in body)
    return Thread(label, body, whole=closed)
