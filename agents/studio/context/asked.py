"""Read what the page is asked to suppose: a draft, other options, another scope."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import Http404
from pydantic import ValidationError

from agents.services.told import INSTRUCTIONS, TOOLS
from agents.studio.context.inspected import MEMORY, OTHERS, REMINDER
from memory.config import merged, problems
from memory.messages import safe_text
from memory.models import MemoryRecord
from memory.models.state import State

#: The options that may be supposed: their kind, their name on the page, and what they mean.
OPTIONS: dict[str, tuple[type[int] | type[float], str, str]] = {
    "message_tokens": (int, "Observe messages at", "tokens"),
    "buffer_activation": (float, "Share to take away", "0 to 1, or tokens to keep"),
    "observation_tokens": (int, "Condense observations at", "tokens"),
    "context_tokens": (int, "Model window", "tokens"),
}
#: The blocks that may be supposed to be left out, and what the page calls them.
DROPPABLE = {
    INSTRUCTIONS: "system instructions",
    TOOLS: "tools",
    MEMORY: "observations",
    OTHERS: "other conversations",
    REMINDER: "reminder",
}
SCOPES = MemoryRecord.Scope.values


@dataclass(frozen=True)
class Asked:
    """Hold what to suppose. ``typed`` is what the fields of the form said.

    ``elsewhere`` is the conversation that the draft is supposed to be sent in instead.
    """

    draft: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    activate: bool = False
    drop: frozenset[str] = frozenset()
    elsewhere: UUID | None = None
    typed: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()

    @property
    def supposes(self) -> bool:
        """Tell whether anything but a draft is supposed."""
        more = self.scope or self.activate or self.drop or self.elsewhere
        return bool(self.options or more)

    @property
    def query(self) -> str:
        """Return the query that asks the same."""
        return urlencode({name: text for name, text in self.typed.items() if text})


def read(query: Mapping[str, str]) -> Asked:
    """Return what a query asks to suppose; what is no number is said to be wrong.

    Raises Http404 when it names what cannot be a conversation.
    """
    drops = {kind: f"without_{kind}" for kind in DROPPABLE}
    names = ("draft", *OPTIONS, "scope", "activate", "elsewhere", *drops.values())
    typed = {name: query.get(name, "").strip() for name in names}
    options, wrong = {}, []
    for name, (kind, label, _) in OPTIONS.items():
        if not typed[name]:
            continue
        try:
            options[name] = kind(typed[name])
        except ValueError:
            wrong.append(f"{label}: “{typed[name][:40]}” is no number.")
    return Asked(
        draft=safe_text(query.get("draft", ""))[: settings.MESSAGE_CHARACTERS or None],
        options=options,
        scope=typed["scope"] if typed["scope"] in SCOPES else "",
        activate=bool(typed["activate"]),
        drop=frozenset(kind for kind, name in drops.items() if typed[name]),
        elsewhere=_id(typed["elsewhere"]),
        typed=typed,
        wrong=tuple(wrong),
    )


def _id(text: str) -> UUID | None:
    """Return the id a text is; None when it is empty. Raises Http404 for what is none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        raise Http404("What is supposed names no conversation.") from None


def refusals(state: State, asked: Asked) -> Iterator[str]:
    """Yield what is wrong with what is supposed, in sentences."""
    yield from asked.wrong
    config = state.record.config if state.record is not None else {}
    try:
        merged(json.loads(state.of_agent) or {}, {**config, **asked.options})
    except ValidationError as error:
        if asked.options:
            yield from problems(error)
