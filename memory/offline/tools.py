"""Say in one statement each what tools were asked and what they found."""

from __future__ import annotations

import re

from memory.offline.reply import Fact
from memory.offline.transcript import Entry

ATTACHED = " attachment "
VERBS = {"Tool call": "called", "Tool result": "result of", "Tool error": "failed:"}

LONGEST = 160
"""Characters of a call or a result that are worth keeping."""

_BLANKS = re.compile(r"\s+")
_PLACEHOLDER = re.compile(r"\[(?:Image|File) #\d+: (?P<label>.*)\]")
_NOISE = re.compile(r"[\s{}\[\]\"]+|(?<=\"):|\s+(?=,)")


def describe_tools(entries: list[Entry]) -> list[Fact]:
    """Return one fact for each tool call or result, in order."""
    return [fact for entry in entries if (fact := _describe(entry)) is not None]


def _describe(entry: Entry) -> Fact | None:
    if ATTACHED in entry.who:
        who, _, kind = entry.who.partition(ATTACHED)
        named = _PLACEHOLDER.fullmatch(entry.text)
        text = f"attached {kind} {_short(named['label'] if named else entry.text)}"
        who = "Assistant" if who.startswith("Tool") else who
        return Fact(who, text, "medium", entry.day, entry.time, (entry.number,))
    for label, verb in VERBS.items():
        if entry.who.startswith(label):
            tool = entry.who.removeprefix(label).strip()
            text = f"{verb} {tool}: {_short(entry.text)}"
            return Fact("Assistant", text, "medium", entry.day, entry.time, (entry.number,))
    return None


def _short(text: str) -> str:
    clean = _BLANKS.sub(" ", _NOISE.sub(" ", text)).replace(" ,", ",").strip()
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST].rsplit(' ', 1)[0]} …"
