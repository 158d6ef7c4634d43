"""Read what the address of the memory page asks for; the address holds all of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, QueryDict

VIEWS = ("log", "diff", "raw")
SEEN = ("stored", "agent")
GROUPS = ("day", "thread", "priority")
SIDES = ("one", "two")
LONGEST_QUERY = 200
PER_PAGE = 60
HIGHEST = 2**31


@dataclass(frozen=True)
class Asked:
    """Hold what is shown: a revision, what it is compared with, how, and what is open.

    ``rev`` is None for the latest, which then stays the latest; ``with_`` None for the one
    before. ``sides`` tells whether a comparison is one text, or two beside each other. ``cause``,
    ``author`` and ``of`` filter the revisions, ``more`` is how many are listed. ``edit`` is the
    line whose editor is open, ``opened`` a folded group to show, or a line of it.
    """

    rev: int | None = None
    with_: int | None = None
    view: str = "log"
    seen: str = "stored"
    group: str = "day"
    sides: str = "one"
    cause: str = ""
    author: str = ""
    of: UUID | None = None
    q: str = ""
    more: int = PER_PAGE
    edit: UUID | None = None
    cycle: UUID | None = None
    opened: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query asks for. Raises Http404 for what names nothing."""
        return cls(
            rev=_number(query, "rev"),
            with_=_number(query, "with"),
            view=_one_of(query, "view", VIEWS),
            seen=_one_of(query, "seen", SEEN),
            group=_one_of(query, "group", GROUPS),
            sides=_one_of(query, "sides", SIDES),
            cause=query.get("cause", "")[:20],
            author=query.get("author", "")[:150],
            of=_id(query, "of"),
            q=query.get("q", "").replace("\x00", "").strip()[:LONGEST_QUERY],
            more=max(PER_PAGE, min(_number(query, "more") or PER_PAGE, 100 * PER_PAGE)),
            edit=_id(query, "edit"),
            cycle=_id(query, "cycle"),
            opened=query.get("opened", "")[:60],
        )

    def link(self, **changes: Any) -> str:
        """Return the address of this page with something changed."""
        pairs = self.but(**changes).pairs()
        return f"?{urlencode(pairs)}" if pairs else "?"

    def before(self, name: str) -> str:
        """Return this address up to the value of a field that is to be added at its end."""
        pairs = self.but(**{name: None}).pairs()
        return f"?{urlencode(pairs)}{'&' if pairs else ''}{name}="

    def but(self, **changes: Any) -> Self:
        """Return this with something changed. Another revision closes what was open."""
        if "rev" in changes:
            changes = {"edit": None, "cycle": None, "opened": "", "q": "", **changes}
        return replace(self, **changes)

    def pairs(self, *without: str) -> dict[str, str]:
        """Return the query's fields that are not as usual, for links and for forms."""
        found = {}
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.removesuffix("_")
            if value != field.default and name not in without:
                found[name] = str(value)
        return found


def _number(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > HIGHEST:
        raise Http404(f"There is no revision “{text[:20]}”.")
    return int(text)


def _one_of(query: QueryDict, name: str, choices: tuple[str, ...]) -> str:
    asked = query.get(name, "")
    return asked if asked in choices else choices[0]


def _id(query: QueryDict, name: str) -> UUID | None:
    try:
        return UUID(query.get(name, ""))
    except ValueError:
        return None
