"""Reflect without a model: keep the lines that add most until the target holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from datetime import date

from memory.offline import coverage, reply
from memory.offline.clauses import telegraph
from memory.offline.dates import find_moments
from memory.offline.extract import DROP, TASTE, estimate
from memory.offline.salience import Setting, salience
from memory.offline.superseded import drop_superseded
from memory.offline.transcript import Noted, block, read_lines, subject_of
from memory.offline.words import stem

_TRIES = 8
_LINE_COST = 3
KIND_WORTH = {"high": 0.5, "done": 0.35, "medium": 0.2, "plain": 0.2, "low": 0.11}
"""What the kind of a line says of the worth its facts had when they were observed."""


_TARGET = re.compile(r"below (\d+) tokens")
_LEVEL = ("eight parts", "six parts", "four parts", "two parts")


def reflect(prompt: str, count: Callable[[str], int] = estimate) -> str:
    """Return the Reflector's reply to a request: fewer lines, strictly below a target of tokens.

    A line so long that it misses the target alone is kept all the same: never nothing.
    """
    noted = list(read_lines(block(prompt, "lines")))
    target, level = _wanted(prompt)
    facts = drop_superseded(_drop_repeats(_facts(noted))) or _verbatim(noted)
    claims = [_claim(fact) for fact in facts]
    lines = _fit(facts, claims, target * (1 - 0.05 * level), count)
    return f"<observations>\n{reply.print_lines(lines, clock=False)}\n</observations>\n"


def _fit(
    facts: list[reply.Fact],
    claims: list[coverage.Claim],
    target: float,
    count: Callable[[str], int],
) -> list[reply.Entry]:
    """Return as many lines as stay below a target; at least the one worth most."""
    best = [max(range(len(claims)), key=lambda index: claims[index].worth)] if claims else []
    low, high = 0.0, 3.0 * target
    for _ in range(_TRIES):
        budget = (low + high) / 2
        kept = _choose(claims, budget)
        if sum(map(count, reply.texts(_join([facts[index] for index in kept])))) < target:
            best, low = kept or best, budget
        else:
            high = budget
    return _join([facts[index] for index in best])


def _wanted(prompt: str) -> tuple[int, int]:
    """Return the target in tokens and the level that the request's last words name."""
    task = prompt[prompt.rfind("</lines>") :]
    match = _TARGET.search(task)
    level = next((n for n, words in enumerate(_LEVEL, 1) if words in task), 0)
    return int(match[1]) if match else 1_000, level


def _choose(claims: list[coverage.Claim], budget: float) -> list[int]:
    def overhead(group: tuple[object, ...]) -> int:
        return _LINE_COST

    return coverage.choose(claims, Counter(), budget=budget, taste=TASTE, overhead=overhead)


def _facts(noted: list[Noted]) -> list[reply.Fact]:
    facts: list[reply.Fact] = []
    subject, kind = "", "plain"
    for line in noted:
        kind = kind if line.is_sub_point and line.kind == "plain" else line.kind
        subject = subject if line.is_sub_point else ""
        for statement in line.text.split("; "):
            named, words = subject_of(statement)
            subject = named or subject
            facts.append(_fact(line, subject, kind, words))
    return [fact for fact in facts if fact.text]


def _verbatim(noted: list[Noted]) -> list[reply.Fact]:
    """Return the last line as it is, for when no line holds a word."""
    return [
        reply.Fact("", line.text, line.kind, line.day, line.time, (line.number,))
        for line in noted[-1:]
    ]


def _drop_repeats(facts: list[reply.Fact]) -> list[reply.Fact]:
    """Return the facts without those that an earlier one says in the same words."""
    said: set[tuple[str, frozenset[str]]] = set()
    fresh: list[reply.Fact] = []
    for fact in facts:
        key = (fact.subject, frozenset(coverage.term_weights(fact.text)))
        if key not in said:
            fresh.append(fact)
        said.add(key)
    return fresh


def _fact(line: Noted, subject: str, kind: str, statement: str) -> reply.Fact:
    day = line.day or date(1970, 1, 1)
    text = telegraph(statement, day, drop=DROP, year=day.year)
    dated = bool(find_moments(statement, day))
    return reply.Fact(subject, text, kind, line.day, line.time, (line.number,), dated)


def _claim(fact: reply.Fact) -> coverage.Claim:
    terms = coverage.term_weights(fact.text)
    terms = {term: heavy for term, heavy in terms.items() if term != stem(fact.subject)} or terms
    worth = salience(fact.text, Setting(from_assistant=fact.subject == "Assistant"), fact.dated)
    worth = math.sqrt(KIND_WORTH[fact.kind] * worth)
    return coverage.Claim(
        fact.text, fact.subject, worth, coverage.size(fact.text), terms, fact.numbers
    )


def _join(facts: list[reply.Fact]) -> list[reply.Entry]:
    """Return the facts as lines: what stood on one line stays on one line."""
    lines: dict[tuple[object, ...], reply.Entry] = {}
    for fact in facts:
        key = (fact.numbers,)
        entry = lines.get(key)
        lines[key] = reply.Entry((*entry.facts, fact)) if entry else reply.Entry((fact,))
    return list(lines.values())
