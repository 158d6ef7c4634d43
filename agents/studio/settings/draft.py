"""Read a form of options into a draft: what would be set, what is wrong with it, what changes.

Each field shows the value in force. One that is left as it was stays with whoever set it; one that
is typed over is set here; and one that is given back follows again what is below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2s
from typing import Any

from django.http import QueryDict
from pydantic import ValidationError

from memory.config import MemoryOptions, Source, explain, faults, merged
from memory.services.change import Refused
from memory.services.configure import changed, differences

from .fields import OF_AGENT, OF_RECORD, Field, Group
from .mixes import notes
from .texts import BadText

GIVE_BACK = "give_back"
SEEN = "seen"


@dataclass(frozen=True)
class Layers:
    """Hold the options set here, and those of the agent below them; ``here`` says who sets them."""

    own: Mapping[str, Any]
    below: Mapping[str, Any] = field(default_factory=dict)
    here: Source = "record"

    @property
    def groups(self) -> Sequence[Group]:
        """Return what can be set here."""
        return OF_RECORD if self.here == "record" else OF_AGENT

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Return the fields of what can be set here, by name."""
        return {each.name: each for group in self.groups for each in group.fields}

    @cached_property
    def shown(self) -> dict[str, tuple[str, Source]]:
        """Return each option's value in force as text, with who set it."""
        return self._texts(self.own)

    @cached_property
    def inherited(self) -> dict[str, tuple[str, Source]]:
        """Return what would be in force if nothing were set here."""
        return self._texts({})

    def _texts(self, own: Mapping[str, Any]) -> dict[str, tuple[str, Source]]:
        found = self._explained(own)
        return {
            name: (each.text.show(found[name].value), self._source(found[name].source))
            for name, each in self.fields.items()
        }

    def _explained(self, own: Mapping[str, Any]) -> Mapping[str, Any]:
        for below, mine in ((self.below, own), (self.below, {}), ({}, {})):
            try:
                return explain(below, mine)
            except ValidationError:
                continue  # Options that are wrong are not in force, here as anywhere.
        raise AssertionError("The server's own defaults are not valid.")

    def _source(self, source: Source) -> Source:
        return self.here if source == "record" else source


@dataclass(frozen=True)
class Entry:
    """Show one option: its value as text, who set it, and what is to be said beside it."""

    field: Field
    text: str
    source: Source
    own: bool
    below: str
    below_source: Source
    faults: Sequence[str] = ()
    note: str = ""
    changed: bool = False

    @property
    def rows(self) -> int:
        """Return how many lines a field of several needs."""
        return min(12, max(2, self.text.count("\n") + 1))


class Draft:
    """Hold what a form would make of the options of one place; nothing is stored."""

    def __init__(self, layers: Layers, form: QueryDict | None = None, *, tools: Sequence[str] = ()):
        self.layers = layers
        self.tools = tools
        self.form = form if form is not None else QueryDict()
        self.wrong: dict[str, list[str]] = {}
        self.own = dict(self._read())
        self.options = self._validated()

    def _read(self) -> Iterator[tuple[str, Any]]:
        given_back = set(self.form.getlist(GIVE_BACK))
        fields = self.layers.fields
        yield from ((n, v) for n, v in self.layers.own.items() if n not in fields)
        for name, each in fields.items():
            typed = self.typed(name)
            if name in given_back:
                continue
            if typed is None or typed == _plain(self.layers.shown[name][0]):
                if name in self.layers.own:
                    yield name, self.layers.own[name]
                continue
            try:
                yield name, each.text.read(typed)
            except BadText as error:
                self.wrong.setdefault(name, []).append(str(error))

    def typed(self, name: str) -> str | None:
        """Return what was typed into a field; None when the form has none."""
        text = self.form.get(name)
        return None if text is None else _plain(text)

    def _validated(self) -> MemoryOptions | None:
        try:
            # As it is stored: values made plain, and nothing in them that cannot be kept.
            self.own = changed(self.layers.below, {}, self.own)
            return None if self.wrong else merged(self.layers.below, self.own)
        except Refused as refused:
            self._find_faults(str(refused))
        return None

    def _find_faults(self, said: str) -> None:
        try:
            merged(self.layers.below, self.own)
        except ValidationError as error:
            for fault in faults(error):
                self.wrong.setdefault(fault.option, []).append(fault.said)
        else:
            self.wrong.setdefault(said.partition(":")[0], []).append(said)

    @property
    def is_valid(self) -> bool:
        """Tell whether the draft could be stored."""
        return self.options is not None

    @cached_property
    def changes(self) -> dict[str, dict[str, Any]]:
        """Return what the draft changes of what is set here."""
        return differences(self.layers.own, self.own)

    @property
    def digest(self) -> str:
        """Return a short name of what the draft sets, by which its effect is known to be seen."""
        written = json.dumps(self.own, sort_keys=True, default=str)
        return blake2s(written.encode(), digest_size=6).hexdigest()

    @property
    def loose(self) -> list[str]:
        """Return what is wrong and belongs to no field."""
        return [
            said
            for name, each in self.wrong.items()
            if name not in self.layers.fields
            for said in each
        ]

    @property
    def entries(self) -> list[tuple[Group, list[Entry]]]:
        """Return all fields as the page shows them."""
        beside = notes(self.options, tools=self.tools) if self.options else {}
        return [
            (group, [self._entry(each, beside.get(each.name, "")) for each in group.fields])
            for group in self.layers.groups
        ]

    def _entry(self, each: Field, note: str) -> Entry:
        shown, _ = self.layers.shown[each.name]
        below, below_source = self.layers.inherited[each.name]
        typed = self.typed(each.name)
        given_back = each.name in self.form.getlist(GIVE_BACK)
        own = each.name in self.own or each.name in self.wrong
        text = below if given_back else shown if typed is None else typed
        return Entry(
            field=each,
            text=text,
            source=self.layers.here if own else below_source,
            own=own,
            below=below,
            below_source=below_source,
            faults=self.wrong.get(each.name, ()),
            note=note,
            changed=each.name in self.changes,
        )


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
