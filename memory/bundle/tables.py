"""Name the tables of a bundle: whose rows, by what they are known, and what may differ."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Model, QuerySet

from memory import media
from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    Media,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)

from .values import as_json, by_word, of_resource

Rows = Callable[[Resource], Iterable[Any]]
AT_ONCE = 500


@dataclass(frozen=True)
class Table:
    """Describe how the rows of a model travel.

    ``key`` names the fields a row is known by, ``rows`` selects a resource's in order. What is in
    ``loose`` may differ and is brought up to date; ``without`` does not travel. Rows of a
    ``shared`` table may belong to other resources too, and are left as they are.
    """

    name: str
    model: type[Model]
    key: tuple[str, ...]
    rows: Rows
    loose: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    shared: bool = False
    extra: Callable[[Any], Mapping[str, Any]] = field(default=lambda row: {})

    @property
    def fields(self) -> list[models.Field[Any, Any]]:
        """Return the fields that travel: not numbers the database gave."""
        return [
            each
            for each in self.model._meta.concrete_fields
            if not isinstance(each, models.AutoField) and each.name not in self.without
        ]

    def lines(self, resource: Resource) -> Iterator[dict[str, Any]]:
        """Return the rows of a resource as JSON."""
        names = _usernames()
        for row in self.rows(resource):
            yield {"table": self.name, **self._values(row, names), **self.extra(row)}

    def _values(self, row: Model, names: Mapping[int, str]) -> dict[str, Any]:
        return {each.name: self._value(row, each, names) for each in self.fields}

    def _value(self, row: Model, each: models.Field[Any, Any], names: Mapping[int, str]) -> Any:
        value = getattr(row, each.attname)
        if of_resource(each):
            return None  # There is one only; the file says which.
        if by_word(each):
            return names.get(value) if value is not None else None
        return as_json(value)


def _usernames() -> dict[int, str]:
    users: Any = get_user_model()._default_manager
    return dict(users.values_list("pk", users.model.USERNAME_FIELD))


def _in_chunks(rows: QuerySet[Any]) -> Iterator[Any]:
    return rows.iterator(chunk_size=AT_ONCE)


def _of_records(model: type[Model], path: str, *order: str) -> Rows:
    manager = model._default_manager
    return lambda resource: _in_chunks(manager.filter(**{path: resource}).order_by(*order))


def _members(resource: Resource) -> dict[str, Any]:
    names = resource.members.order_by("username").values_list("username", flat=True)
    return {"members": list(names)}


def _media(resource: Resource) -> Iterator[Media]:
    payloads = Message.objects.filter(thread__resource=resource).values_list("payload", flat=True)
    return files_of(
        {each.hash for payload in _in_chunks(payloads) for each in media.references(payload)}
    )


def files_of(hashes: Iterable[str]) -> Iterator[Media]:
    """Return the files with some hashes whose bytes are there, in order."""
    for row in Media.objects.filter(hash__in=set(hashes)).order_by("hash"):
        if media.exists(row.hash):
            yield row


def file_table(name: str, rows: Rows) -> Table:
    """Return a table of files, which travel with their bytes."""
    return Table(
        name,
        Media,
        ("hash",),
        rows,
        without=frozenset({"id", "created_at", "used_at"}),
        shared=True,
        extra=lambda row: {"bytes": b64encode(media.read(row.hash)).decode()},
    )


def _blobs(resource: Resource) -> Iterator[Blob]:
    cycles = Cycle.objects.filter(record__resource=resource)
    pairs = cycles.values_list("request_hash", "reply_hash")
    return blobs_of({digest for pair in _in_chunks(pairs) for digest in pair if digest})


def blobs_of(hashes: Iterable[str]) -> Iterator[Blob]:
    """Return the texts that are still kept under some hashes, in order."""
    ordered = sorted(hashes)
    for start in range(0, len(ordered), AT_ONCE):
        yield from Blob.objects.filter(hash__in=ordered[start : start + AT_ONCE]).order_by("hash")


MEMORY: tuple[Table, ...] = (
    Table(
        "resource",
        Resource,
        ("key",),
        lambda resource: [resource],
        loose=frozenset({"name", "time_zone"}),
        extra=_members,
    ),
    Table(
        "thread",
        Thread,
        ("id",),
        _of_records(Thread, "resource", "id"),
        loose=frozenset(
            {"title", "title_pinned", "metadata", "last_active_at", "archived_at", "deleted_at"}
        ),
    ),
    file_table("media", _media),
    Table(
        "message",
        Message,
        ("thread", "position"),
        _of_records(Message, "thread__resource", "thread_id", "position"),
    ),
    Table("text", Blob, ("hash",), _blobs, without=frozenset({"kept_at"}), shared=True),
    Table("record", MemoryRecord, ("id",), _of_records(MemoryRecord, "resource", "id")),
    Table(
        "cursor",
        Cursor,
        ("record", "thread"),
        _of_records(Cursor, "record__resource", "record_id", "thread_id"),
    ),
    Table("cycle", Cycle, ("id",), _of_records(Cycle, "record__resource", "id")),
    Table("observation", Observation, ("id",), _of_records(Observation, "record__resource", "id")),
    Table(
        "source",
        ReflectionSource,
        ("reflection", "observation"),
        _of_records(
            ReflectionSource, "reflection__record__resource", "reflection_id", "observation_id"
        ),
    ),
    Table(
        "line",
        Line,
        ("id",),
        _of_records(Line, "observation__record__resource", "id"),
        loose=frozenset({"last_used_at"}),
    ),
    Table(
        "revision",
        Revision,
        ("record", "number"),
        _of_records(Revision, "record__resource", "record_id", "number"),
    ),
)
