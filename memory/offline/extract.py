"""Observe without a model: choose what was said that is worth keeping, and write it down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from memory.offline import coverage, reply, tasks
from memory.offline.clauses import telegraph
from memory.offline.dates import find_moments
from memory.offline.kinds import kind_of
from memory.offline.salience import Setting, salience
from memory.offline.sentences import split_sentences
from memory.offline.tools import describe_tools
from memory.offline.transcript import (
    Entry,
    block,
    named_speakers,
    read_entries,
    read_lines,
    read_threads,
    subject_of,
)
from memory.offline.words import LIGHT_WORDS, content_stems, stem

SHARE = 0.8
"""At most this part of what was read is written."""

LEAST = 0.03
"""What a statement must add, per token, to be written at all."""

TASTE = coverage.Taste(novelty=0.4, fade=0.75, thrift=0.7)
DROP = LIGHT_WORDS
_LINE_COST = 3


def estimate(text: str) -> int:
    """Return about how many tokens a text has."""
    return len(text) // 4 + 1


@dataclass(frozen=True, slots=True)
class _Candidate:
    fact: reply.Fact
    worth: float


def observe(prompt: str, count: Callable[[str], int] = estimate) -> str:
    """Return the Observer's reply to a request, in the format the request asks for."""
    conversation = block(prompt, "conversation")
    previous = block(prompt, "previous-observations")
    threads = read_threads(conversation)
    if not threads:
        printed, hints = _observed(conversation, _covered(previous), count)
        return f"<observations>\n{printed}\n</observations>\n{hints}"
    covered = _covered(previous)
    blocks = [
        '<thread id="{}">\n{}\n{}</thread>'.format(label, *_observed(text, covered, count))
        for label, text in threads
    ]
    return "<observations>\n{}\n</observations>\n".format("\n".join(blocks))


def _observed(
    conversation: str, covered: coverage.Covered, count: Callable[[str], int]
) -> tuple[str, str]:
    """Return the observations of one thread, and its hints in tags."""
    entries = read_entries(conversation)
    candidates = [*_spoken(entries), *describe_candidates(entries)]
    candidates.sort(key=lambda candidate: candidate.fact.numbers[0])
    names = frozenset(stem(candidate.fact.subject) for candidate in candidates)
    claims = [_claim(candidate, names) for candidate in candidates]
    budget = SHARE * sum(count(entry.text) + 8 for entry in entries)
    kept = coverage.choose(
        claims, covered, budget=budget, floor=LEAST, taste=TASTE, overhead=lambda _: _LINE_COST
    )
    printed = reply.print_lines(reply.join(candidates[index].fact for index in kept))
    return printed or "(none)", tasks.print_hints(entries)


def describe_candidates(entries: list[Entry]) -> list[_Candidate]:
    """Return what the tools did, as candidates."""
    return [_Candidate(fact, 0.4) for fact in describe_tools(entries)]


def _covered(previous: str) -> coverage.Covered:
    covered: coverage.Covered = Counter()
    subject = ""
    for line in read_lines(previous):
        for statement in line.text.split("; "):
            named, text = subject_of(statement)
            subject = named or subject
            coverage.cover(covered, subject, set(content_stems(text)))
    return covered


def _claim(candidate: _Candidate, names: frozenset[str]) -> coverage.Claim:
    fact = candidate.fact
    terms = coverage.term_weights(fact.text)
    terms = {term: heavy for term, heavy in terms.items() if term not in names} or terms
    group = (fact.numbers[0] // 3, fact.dated)
    return coverage.Claim(
        fact.text, fact.subject, candidate.worth, coverage.size(fact.text), terms, group
    )


def _spoken(entries: list[Entry]) -> list[_Candidate]:
    speakers = named_speakers(entries)
    names = frozenset(name for name, _ in speakers.values())
    found: list[_Candidate] = []
    asked_by = ""
    order = list(speakers)
    for place, index in enumerate(order):
        speaker, text = speakers[index]
        following = speakers[order[place + 1]][1] if place + 1 < len(order) else ""
        found += _statements(
            entries[index], speaker, text, names, bool(asked_by) and asked_by != speaker, following
        )
        asked_by = speaker if "?" in text else ""
    return found


def _statements(
    entry: Entry, speaker: str, text: str, names: frozenset[str], answers: bool, following: str
) -> list[_Candidate]:
    sentences = split_sentences(text)
    said_on = entry.day or date(1970, 1, 1)
    reaction = set(content_stems(following)) if speaker == "Assistant" else set()
    found: list[_Candidate] = []
    for place, sentence in enumerate(sentences):
        written = telegraph(sentence, said_on, drop=DROP, names=names)
        if not written:
            continue
        dated = bool(find_moments(sentence, said_on))
        setting = Setting(
            from_assistant=speaker == "Assistant",
            answers=answers and place < 2,
            opens=place == 0,
            taken_up=min(1.0, len(reaction & set(content_stems(written))) / 3),
        )
        worth = salience(sentence, setting, dated)
        kind = kind_of(sentence, worth, speaker, dated)
        fact = reply.Fact(speaker, written, kind, entry.day, entry.time, (entry.number,), dated)
        found.append(_Candidate(fact, worth))
    return found
