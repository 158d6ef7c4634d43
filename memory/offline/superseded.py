"""Tell which statements a newer one has replaced."""

from __future__ import annotations

import re

from memory.offline.reply import Fact

_ATTRIBUTES = [
    ("home", re.compile(r"\b(?:live|lives|living|moved|moving|relocated) (?:\w+ )?(?:[A-Z])")),
    ("job", re.compile(r"\b(?:works? (?:as|at)|job|employed|hired|new role|promoted)\b", re.I)),
    ("name", re.compile(r"\bname(?:'s| is)? [A-Z]")),
    ("contact", re.compile(r"\b(?:phone number|email address|e-mail)\b", re.I)),
]
_FAVOURITE = re.compile(r"\bfavou?rite (\w+)", re.I)
_CHANGE = re.compile(
    r"\b(?:changed?|switched|moved|no longer|not anymore|instead|replaced|rescheduled|postponed"
    r"|updated?|now|new)\b",
    re.I,
)


def drop_superseded(facts: list[Fact]) -> list[Fact]:
    """Return the facts without those that a later fact about the same thing has changed."""
    latest: set[tuple[str, str]] = set()
    kept: list[Fact] = []
    for fact in reversed(facts):
        attribute = _attribute(fact.text)
        if attribute and (fact.subject, attribute) in latest:
            continue
        if attribute and (_CHANGE.search(fact.text) or attribute.startswith("favourite")):
            latest.add((fact.subject, attribute))
        kept.append(fact)
    return kept[::-1]


def _attribute(text: str) -> str:
    if match := _FAVOURITE.search(text):
        return f"favourite {match[1].lower()}"
    return next((name for name, pattern in _ATTRIBUTES if pattern.search(text)), "")
