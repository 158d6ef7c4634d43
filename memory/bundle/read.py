"""Read the lines of a bundle into rows, trusting none of them."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from zoneinfo import available_timezones

from django.contrib.auth import get_user_model
from django.db.models import Model
from pydantic import ValidationError

from memory import media
from memory.messages import load as load_message
from memory.models import Blob, Media, Message, Resource
from memory.models.blob import digest

from .tables import MEMORY, Table
from .values import BadValue, by_word, from_json, of_resource
from .write import FORMAT, KNOWN, VERSION


class BadBundle(ValueError):
    """Say in one sentence what is wrong with a file, and in which line."""


@dataclass
class Bundle:
    """Hold the rows of a file, table by table, not stored yet.

    ``members`` and ``unknown`` name the resource's members, and people nobody knows here.
    """

    key: str
    tables: Sequence[Table]
    rows: dict[str, list[Model]] = field(default_factory=dict)
    files: dict[str, tuple[bytes, Media]] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    unknown: set[str] = field(default_factory=set)
    version: int = VERSION


def read(lines: Iterable[str], tables: Sequence[Table] = MEMORY) -> Bundle:
    """Return what the lines of a bundle say. Raises BadBundle."""
    numbered = _numbered(lines)
    key, version = _header(next(numbered, (1, {}))[1])
    bundle = Bundle(key, tables, version=version)
    reader = _Reader(bundle)
    count, ended = 0, False
    for number, row in numbered:
        if ended:
            raise BadBundle(f"Line {number} comes after the end.")
        if "end" in row:
            ended = True
            _complete(row.get("rows"), count)
            continue
        count += 1
        try:
            reader.take(row)
        except BadValue as error:
            raise BadBundle(f"Line {number}: {error}.") from None
    if not ended:
        raise BadBundle("The file breaks off: its last line is missing. Export it again.")
    _check_files(bundle)
    return bundle


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise BadBundle(f"Line {number} is not JSON.") from None
        if not isinstance(row, dict):
            raise BadBundle(f"Line {number} is not a JSON object.")
        yield number, row


def _header(row: Mapping[str, Any]) -> tuple[str, int]:
    if row.get("bundle") != FORMAT or not isinstance(row.get("resource"), str):
        raise BadBundle("This is no bundle: its first line does not say so.")
    version = row.get("version")
    if version not in KNOWN:
        raise BadBundle(f"This bundle has version {version}; known are {KNOWN[0]} to {VERSION}.")
    return str(row["resource"]), version


def _complete(said: Any, count: int) -> None:
    if said != count:
        raise BadBundle(f"The file should hold {said} rows and holds {count}. Export it again.")


def _check_files(bundle: Bundle) -> None:
    """Let nothing lay hold of a file that is here already and did not come with it."""
    for table in bundle.tables:
        for row in bundle.rows.get(table.name, ()):
            for hash_ in _files_of(row):
                if hash_ not in bundle.files and media.exists(hash_):
                    raise BadBundle(
                        f"A row of {table.name} ({row}) refers to a file that the bundle does "
                        "not hold."
                    )


def _files_of(row: Any) -> Iterator[str]:
    """Yield the hashes of files that a row refers to."""
    if isinstance(row, Message):
        yield from (each.hash for each in media.references(row.payload))
    for attached in getattr(row, "attachments", ()):
        if isinstance(attached, Mapping) and isinstance(attached.get("hash"), str):
            yield attached["hash"]


class _Reader:
    """Make rows of one bundle's lines."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.tables = {table.name: table for table in bundle.tables}
        self.users = _users()
        here = Resource.objects.filter(key=bundle.key).values_list("pk", flat=True).first()
        self.resource = here

    def take(self, row: Mapping[str, Any]) -> None:
        """Add the row of a line. Raises BadValue."""
        table = self.tables.get(str(row.get("table")))
        if table is None:
            raise BadValue(f"there is no table {str(row.get('table'))[:60]!r}")
        made = self._made(table, row)
        _CHECKS.get(table.model, _fine)(self.bundle, made, row)
        self.bundle.rows.setdefault(table.name, []).append(made)

    def _made(self, table: Table, row: Mapping[str, Any]) -> Model:
        known = {each.name for each in table.fields}
        strange = set(row) - known - {"table", "members", "bytes"}
        if strange:
            raise BadValue(f"{sorted(strange)[0]} is not known here: the file may be newer")
        values: dict[str, Any] = {}
        for each in table.fields:
            if of_resource(each):
                values[each.attname] = self.resource
            elif by_word(each):
                values[each.attname] = self._user(row.get(each.name))
            else:
                values[each.attname] = from_json(each, row)
        return table.model(**values)

    def _user(self, name: Any) -> int | None:
        if name is None:
            return None
        if not isinstance(name, str):
            raise BadValue("a person is named by a text")
        if name not in self.users:
            self.bundle.unknown.add(name)
        return self.users.get(name)


def _users() -> dict[str, int]:
    users: Any = get_user_model()._default_manager
    return dict(users.values_list(users.model.USERNAME_FIELD, "pk"))


def _fine(bundle: Bundle, made: Any, row: Mapping[str, Any]) -> None:
    """Find nothing wrong."""


def _check_resource(bundle: Bundle, made: Any, row: Mapping[str, Any]) -> None:
    if made.key != bundle.key or "resource" in bundle.rows:
        raise BadValue(f"the bundle is of the resource {bundle.key} alone")
    if made.time_zone not in available_timezones():
        raise BadValue(f"there is no time zone {made.time_zone!r}")
    names = row.get("members", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadValue("members is a list of names")
    bundle.members = tuple(names)
    bundle.unknown |= set(names) - set(_users())


def _check_message(bundle: Bundle, made: Any, row: Mapping[str, Any]) -> None:
    try:
        load_message(made.payload)
    except (ValidationError, TypeError, KeyError, ValueError, LookupError, AttributeError):
        raise BadValue(f"the payload of message {made.position} is no message") from None


def _check_text(bundle: Bundle, made: Any, row: Mapping[str, Any]) -> None:
    if digest(made.text) != made.hash:
        raise BadValue("the text is not the one its hash names")


def _check_media(bundle: Bundle, made: Any, row: Mapping[str, Any]) -> None:
    try:
        data = b64decode(row.get("bytes", ""), validate=True)
    except (TypeError, ValueError):
        raise BadValue("bytes is not base64") from None
    if sha256(data).hexdigest() != made.hash:
        raise BadValue("the file is not the one its hash names")
    bundle.files[made.hash] = (data, made)


_CHECKS: dict[type[Model], Callable[[Bundle, Any, Mapping[str, Any]], None]] = {
    Resource: _check_resource,
    Message: _check_message,
    Blob: _check_text,
    Media: _check_media,
}
