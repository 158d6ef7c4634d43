"""Read the requests an Observer and a Reflector get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from memory.offline.dates import read_date

MARKS = {"🔴": "high", "🟡": "medium", "🟢": "low", "✅": "done"}

_ENTRY = re.compile(
    r"^\[#(?P<number>\d+)\] (?P<who>[^:(\n]+?)(?: \((?P<time>\d{1,2}:\d\d)\))?"
    r"(?P<attachment> attachment [^:]+)?: ?(?P<text>.*)$"
)
_LINE = re.compile(
    r"^(?P<indent> *)[*-] (?:(?P<mark>🔴|🟡|🟢|✅)\ufe0f? )?(?:\((?P<time>\d{1,2}:\d\d)\) )?"
    r"(?P<text>.*?)(?: \[#(?P<number>\d+)\])?(?: \[messages? \d+(?:-\d+)?(?: of [\w-]+)?\])?$"
)
_THREAD = re.compile(
    r"^<thread id=\"(?P<label>[^\"\n]*)\">\n(?P<text>.*?)\n?^</thread>$", re.MULTILINE | re.DOTALL
)
_NAME = re.compile(r"^(?P<name>[A-Z][\w.'-]*(?: [A-Z][\w.'-]*)?): ")
_HEADING_WORDS = (
    "Note Notes Warning Tip Tips Answer Example Examples Summary Question Title Step Result"
)
_HEADINGS = frozenset(_HEADING_WORDS.split())


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one entry of a transcript: the message it belongs to, who, when and what."""

    number: int
    who: str
    text: str
    day: date | None
    time: str

    @property
    def is_speech(self) -> bool:
        """Return whether a person or the assistant said it."""
        return self.who in ("User", "Assistant")


@dataclass(frozen=True, slots=True)
class Noted:
    """Hold one line of observations as printed, with its number if it has one."""

    number: int
    kind: str
    text: str
    day: date | None
    time: str
    is_sub_point: bool = False


def block(prompt: str, tag: str) -> str:
    """Return what stands between a tag and its end, the last such block; empty without one."""
    start = prompt.rfind(f"<{tag}>\n")
    end = prompt.find(f"\n</{tag}>", start)
    return prompt[start + len(tag) + 3 : end] if 0 <= start < end else ""


def read_threads(conversation: str) -> list[tuple[str, str]]:
    """Return the label and the transcript of each thread; nothing when there is only one."""
    return [(match["label"], match["text"]) for match in _THREAD.finditer(conversation)]


def read_entries(conversation: str) -> list[Entry]:
    """Return the entries of a transcript; indented lines continue the entry above them."""
    entries: list[Entry] = []
    day: date | None = None
    time = ""
    for line in conversation.split("\n"):
        if line.startswith("Date: "):
            day, time = read_date(line[6:]), ""
        elif match := _ENTRY.match(line):
            time = match["time"] or time
            who = match["who"] + (match["attachment"] or "")
            entries.append(Entry(int(match["number"]), who, match["text"], day, time))
        elif line.startswith("  ") and entries:
            entries[-1] = replace(entries[-1], text=f"{entries[-1].text}\n{line[2:]}")
    return entries


def read_lines(observations: str) -> Iterator[Noted]:
    """Yield the lines of observations as printed, under their dates."""
    day: date | None = None
    for line in observations.split("\n"):
        if line.startswith("Date: "):
            day = read_date(line[6:])
        elif (match := _LINE.match(line)) and match["text"]:
            text = match["text"]
            yield Noted(
                number=int(match["number"] or 0),
                kind=MARKS.get(match["mark"] or "", "plain"),
                text=text.removeprefix("-> "),
                day=day,
                time=match["time"] or "",
                is_sub_point=text.startswith("-> "),
            )


def named_speakers(entries: list[Entry]) -> dict[int, tuple[str, str]]:
    """Return the speaker and the words of each spoken entry, by its index.

    A recorded conversation between two people names them at the start of every message;
    then those names speak. Else the speakers are the user and the assistant.
    """
    spoken = {index: entry for index, entry in enumerate(entries) if entry.is_speech}
    names = {index: _name_of(entry.text) for index, entry in spoken.items()}
    if spoken and all(names.values()) and len(set(names.values())) <= 2:
        return {i: (names[i], entry.text[len(names[i]) + 2 :]) for i, entry in spoken.items()}
    return {index: (entry.who, entry.text) for index, entry in spoken.items()}


def _name_of(text: str) -> str:
    match = _NAME.match(text)
    return match["name"] if match and match["name"] not in _HEADINGS else ""


def subject_of(text: str) -> tuple[str, str]:
    """Return whom a line is about, and the rest of it."""
    match = _NAME.match(text)
    return (match["name"], text[match.end() :]) if match else ("", text)
