"""Say in one statement each what tools were asked and what they found."""

from __future__ import annotations

import re

from memory.offline.reply import Fact
from memory.offline.transcript import Entry

LONGEST = 160
"""Characters of a call or a result that are worth keeping."""

_NOISE = re.compile(r"[\s{}\[\]\"]+")


def describe_tools(entries: list[Entry]) -> list[Fact]:
    """Return one fact for each tool call or result, in order."""
    return [fact for entry in entries if (fact := _describe(entry)) is not None]


def _describe(entry: Entry) -> Fact | None:
    for label, verb in (("Tool call", "called"), ("Tool result", "result of"), ("Tool error", "failed:")):
        if entry.who.startswith(label):
            tool = entry.who.removeprefix(label).strip()
            text = f"{verb} {tool}: {_short(entry.text)}"
            return Fact("Assistant", text, "medium", entry.day, entry.time, (entry.number,))
    return None


def _short(text: str) -> str:
    clean = _NOISE.sub(" ", text).strip()
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST].rsplit(' ', 1)[0]} …"
