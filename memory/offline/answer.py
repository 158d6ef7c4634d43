"""Answer without a model: find what is known about the words of a message, and say it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from memory.offline.sentences import split_sentences
from memory.offline.transcript import Noted, block, read_lines, subject_of
from memory.offline.words import content_stems, weight, words

INTRODUCTION = (
    "I am the offline model: I follow rules and look things up in what I am shown, "
    "there is no language model behind me."
)
NOTHING = "Nothing I can see speaks of that."
ACKNOWLEDGED = ("Noted", "I have noted it", "I will keep that in mind", "That goes into the notes")

_ASKS = re.compile(
    r"^(?:who|what|when|where|which|why|how|whose|is|are|am|was|were|do|does|did|can|could|will"
    r"|would|should|has|have|had|tell me|remind me)\b",
    re.I,
)
_TIME = re.compile(
    r"\bwhat(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)\b|\btoday's date\b", re.I
)
_EXACT = re.compile(
    r"\b(?:exact(?:ly)?|word for word|verbatim|quote|recall|literally|in my own words)\b", re.I
)
_MESSAGE = re.compile(r"^\[\d+\] ", re.M)
_LEAST_SHARE = 0.3
_SECOND_SHARE = 0.75
_LONGEST_QUOTE = 320


@dataclass(frozen=True, slots=True)
class Said:
    """Hold one message of the conversation that is shown whole."""

    by_user: bool
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold what the Actor is shown: memory, raw messages, tools and what a tool returned.

    ``memory`` is the text of the memory block; the last of ``messages`` is the user's
    prompt. ``tools`` maps each tool's name to its parameters' JSON schema.
    """

    memory: str = ""
    messages: Sequence[Said] = ()
    tools: Mapping[str, Mapping[str, Any]] | None = None
    results: Sequence[tuple[str, str]] = ()

    @property
    def prompt(self) -> str:
        """Return the last thing the user said."""
        return next((said.text for said in reversed(self.messages) if said.by_user), "")


@dataclass(frozen=True, slots=True)
class Call:
    """Ask for a tool to be called."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Found:
    text: str
    day: date | None
    share: float
    observed: bool


def answer(asked: Asked) -> str | Call:
    """Return the answer, or the call of a tool that is needed for it."""
    if asked.results:
        return _from_results(asked)
    if call := _wanted_call(asked):
        return call
    is_question = _is_question(asked.prompt)
    reply = _from_memory(asked) if is_question else _acknowledge(asked)
    first = not any(not said.by_user for said in asked.messages) and not asked.memory
    return f"{reply} {INTRODUCTION}" if first or NOTHING in reply else reply


def _is_question(text: str) -> bool:
    return "?" in text or bool(_ASKS.match(text.strip()))


def _wanted_call(asked: Asked) -> Call | None:
    tools = asked.tools or {}
    clock = next((name for name in tools if "time" in name), None)
    if clock and _TIME.search(asked.prompt):
        return Call(clock, {})
    if "recall" in tools and _EXACT.search(asked.prompt):
        return Call("recall", _recalling(asked.prompt, tools["recall"].get("properties", {})))
    return None


def _recalling(prompt: str, known: Collection[str]) -> dict[str, Any]:
    """Return what to ask recall for: the words of a prompt, or the newest messages."""
    sought = _keywords(prompt)
    if sought and "query" in known:
        return {"query": sought, **({"mode": "words"} if "mode" in known else {})}
    return {"anchor": "end", "limit": 4} if "anchor" in known else {}


def _keywords(text: str) -> str:
    kept = [word for word in words(text) if weight(word) >= 1 and not _EXACT.search(word)]
    return " ".join(dict.fromkeys(kept))


def _from_results(asked: Asked) -> str:
    tool, result = asked.results[-1]
    text = _quoted(result)
    if "time" in tool:
        return f"It is {text}."
    if tool == "recall":
        return f"This is what was said, word for word:\n\n> {_block_quote(text)}"
    return f"{tool} says: {text}"


def _quoted(result: str) -> str:
    try:
        value = json.loads(result)
    except ValueError:
        value = result
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.strip()


def _block_quote(text: str) -> str:
    paragraphs = text.split("\n\n")
    # What recall says of its page comes before the messages.
    spoken = [part for part in paragraphs if _MESSAGE.search(part)] or paragraphs
    excerpts = [_shortened(part) for part in spoken[:3]]
    return "\n>\n> ".join(part.replace("\n", "\n> ") for part in excerpts)


def _from_memory(asked: Asked) -> str:
    found = _ranked(asked)
    if not found:
        return NOTHING
    best = found[0]
    told = [_told(best)]
    if len(found) > 1 and found[1].share >= _SECOND_SHARE * best.share:
        told.append(_told(found[1]))
    return " ".join(told)


def _told(found: _Found) -> str:
    text = _shortened(found.text).rstrip(".")
    if not found.observed:
        return f"You said just now: “{text}”."
    noted = f"from {found.day:%B} {found.day.day}, {found.day.year}" if found.day else ""
    return f"My notes {noted} say: {text}.".replace("notes  say", "notes say")


def _ranked(asked: Asked) -> list[_Found]:
    """Return what shares most content with the prompt, the later one first among equals."""
    sought = set(content_stems(asked.prompt))
    if not sought:
        return []
    candidates = [*_noted(asked.memory), *_spoken(asked)]
    rarity = _rarity(sought, [found.text for found in candidates])
    total = sum(rarity.values()) or 1.0
    scored = [
        _Found(c.text, c.day, _overlap(c.text, rarity) / total, c.observed) for c in candidates
    ]
    good = [found for found in scored if found.share >= _LEAST_SHARE]
    good.reverse()
    return sorted(good, key=lambda found: -found.share)


def _rarity(sought: Collection[str], texts: Sequence[str]) -> dict[str, float]:
    stems = [set(content_stems(text)) for text in texts]
    return {one: 1 / (1 + sum(one in known for known in stems)) ** 0.5 for one in sought}


def _overlap(text: str, rarity: Mapping[str, float]) -> float:
    known = set(content_stems(text))
    return sum(heavy for one, heavy in rarity.items() if one in known)


def _noted(memory: str) -> list[_Found]:
    return [
        _Found(statement.strip(), line.day, 0.0, observed=True)
        for line in read_lines(block(memory, "observations"))
        for statement in _statements(line)
    ]


def _statements(line: Noted) -> list[str]:
    """Return the statements of a line, each under the name the line begins with."""
    subject, text = subject_of(line.text)
    return [f"{subject}: {part}" if subject else part for part in text.split("; ")]


def _spoken(asked: Asked) -> list[_Found]:
    earlier = [said.text for said in asked.messages[:-1] if said.by_user]
    return [
        _Found(sentence, None, 0.0, observed=False)
        for text in earlier
        for sentence in split_sentences(text)
        if not sentence.endswith("?")
    ]


def _acknowledge(asked: Asked) -> str:
    sentences = split_sentences(asked.prompt) or [asked.prompt.strip()]
    heaviest = max(sentences, key=lambda text: len(content_stems(text)))
    # The wording changes with the message, so that a long chat does not sound like a form.
    opening = ACKNOWLEDGED[len(asked.prompt) % len(ACKNOWLEDGED)]
    return f"{opening}: “{_shortened(heaviest.strip())}”"


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_QUOTE:
        return text
    return text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " …"
