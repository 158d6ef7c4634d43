"""Store a bundle, or say what storing it would do; all of it or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.db.models import Model

from memory import media
from memory.models import Cursor, Media, MemoryRecord, Resource, Thread
from memory.services import kept
from memory.services.sizes import recount_resource
from memory.verify import verify

from .read import BadBundle, Bundle
from .tables import AT_ONCE, Table
from .values import of_resource

CREATE, UPDATE, SKIP, CONFLICT = "create", "update", "skip", "conflict"
OUTCOMES = (CREATE, UPDATE, SKIP, CONFLICT)
COUNTED_AS_SENT = 2
MOST_TOLD = 20

Running = Callable[[], Mapping[UUID, int]]


@dataclass(frozen=True)
class Conflict:
    """Name a row that is here already and says something else, and what differs."""

    table: str
    key: str
    differs: tuple[str, ...]


@dataclass
class Report:
    """Say what storing a bundle does, or would do: rows of each table by outcome.

    ``problems`` are sentences that keep all of it from being stored, ``notes`` those that do not.
    """

    resource: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stored: bool = False

    @property
    def sound(self) -> bool:
        """Tell whether the bundle can be stored."""
        return not (self.problems or self.total(CONFLICT))

    def total(self, outcome: str) -> int:
        """Return how many rows have an outcome."""
        return sum(counted[outcome] for counted in self.counts.values())


def load(bundle: Bundle, *, dry_run: bool = False, running: Running = dict) -> Report:
    """Store what is new and bring descriptions up to date, unless anything is in conflict.

    A dry run stores everything, checks every invariant, and takes it back. ``running`` tells
    where the running turn of each thread begins.
    """
    report = Report(bundle.key, notes=list(_notes(bundle)))
    try:
        with transaction.atomic():
            _store(bundle, report, running, dry_run)
            report.stored = report.sound and not dry_run
            if not report.stored:
                transaction.set_rollback(True)
    except IntegrityError:
        report.stored = False
        report.problems.append(
            "Rows of the bundle and rows that are here cannot stand side by side, such as two "
            "memories of one conversation. Erase the resource here first."
        )
    if report.stored:
        kept.forget_everything()
    return report


def _notes(bundle: Bundle) -> Iterator[str]:
    for name in sorted(bundle.unknown):
        yield f"There is no user {name} here: what is by them has no author, and they no access."


def _store(bundle: Bundle, report: Report, running: Running, dry_run: bool) -> None:
    if "resource" not in bundle.rows:
        raise BadBundle("The bundle holds no resource.")
    new: list[tuple[Table, list[Model]]] = []
    for table in bundle.tables:
        rows = bundle.rows.get(table.name, [])
        report.counts[table.name] = Counter()
        new.append((table, _sorted_out(bundle, table, rows, report)))
    if report.total(CONFLICT):
        return
    resource = _resource(bundle)
    for table, rows in new:
        _insert(table, rows, resource)
    if bundle.version < COUNTED_AS_SENT or report.counts["resource"][UPDATE]:
        # Another time zone moves the days that lines are listed under.
        recount_resource(resource.pk)
    connection.check_constraints()
    report.problems += _violations(bundle, resource, running)
    if report.sound and not dry_run:
        for data, row in bundle.files.values():
            # Should the commit fail, the sweep finds files without rows and removes them.
            media.keep(data, media_type=row.media_type, name=row.name)


def _sorted_out(bundle: Bundle, table: Table, rows: Sequence[Model], report: Report) -> list[Model]:
    """Return the rows to create; count all, and bring loose fields up to date."""
    new: list[Model] = []
    counted = report.counts[table.name]
    for batch in _batches(rows):
        here = _here(table, batch)
        for row in batch:
            found = here.get(_key(table, row))
            outcome = CREATE if found is None else _compared(bundle, table, row, found, report)
            counted[outcome] += 1
            if outcome == CREATE:
                new.append(row)
    return new


def _batches(rows: Iterable[Model]) -> Iterator[list[Model]]:
    source = iter(rows)
    while batch := list(islice(source, AT_ONCE)):
        yield batch


def _key(table: Table, row: Model) -> tuple[Any, ...]:
    fields: Any = {each.name: each for each in table.model._meta.concrete_fields}
    return tuple(getattr(row, fields[name].attname) for name in table.key)


def _here(table: Table, batch: Sequence[Model]) -> dict[tuple[Any, ...], Model]:
    keys = [_key(table, row) for row in batch]
    chosen = {f"{name}__in": {key[place] for key in keys} for place, name in enumerate(table.key)}
    found = table.model._default_manager.filter(**chosen)
    return {_key(table, row): row for row in found}


def _compared(bundle: Bundle, table: Table, row: Model, found: Model, report: Report) -> str:
    differs = [each for each in table.fields if _differs(each, row, found)]
    if table.shared:
        return SKIP
    strict = tuple(each.name for each in differs if each.name not in table.loose)
    if strict:
        if len(report.conflicts) < MOST_TOLD:
            key = " ".join(str(each) for each in _key(table, row))
            report.conflicts.append(Conflict(table.name, key, strict))
        return CONFLICT
    joined = table.model is Resource and bool(_missing_members(bundle, found))
    if not differs:
        return UPDATE if joined else SKIP
    for each in differs:
        setattr(found, each.attname, getattr(row, each.attname))
    found.save(update_fields=[each.name for each in differs])
    return UPDATE


def _differs(each: Any, row: Model, found: Model) -> bool:
    return bool(getattr(row, each.attname) != getattr(found, each.attname))


def _resource(bundle: Bundle) -> Resource:
    """Return the resource the rows go to, made now if there is none, with its members."""
    given: Any = bundle.rows["resource"][0]
    resource = Resource.objects.filter(key=bundle.key).first()
    if resource is None:
        given.save(force_insert=True)
        resource = given
    resource.members.add(*_missing_members(bundle, resource))
    return resource


def _missing_members(bundle: Bundle, resource: Any) -> list[Any]:
    users: Any = get_user_model()._default_manager
    named = users.filter(username__in=bundle.members)
    return list(named.exclude(pk__in=resource.members.values("pk")))


def _insert(table: Table, rows: Sequence[Model], resource: Resource) -> None:
    if table.model in (Resource, Media):
        return  # The one is there by now, the others come with their bytes.
    for each in table.fields:
        if of_resource(each):
            for row in rows:
                setattr(row, each.attname, resource.pk)
    for batch in _batches(rows):
        table.model._default_manager.bulk_create(batch, ignore_conflicts=table.shared)


def _violations(bundle: Bundle, resource: Resource, running: Running) -> list[str]:
    """Return what the memory would break of what must hold, a few sentences at most."""
    found: list[str] = []
    records = MemoryRecord.objects.filter(resource=resource).values_list("pk", flat=True)
    known = Cursor.objects.filter(record__resource=resource).values("thread")
    alone = Thread.objects.filter(resource=resource).exclude(pk__in=known)
    reports = [verify(record=pk, running=running) for pk in records]
    reports += [verify(thread=pk, running=running) for pk in alone.values_list("pk", flat=True)]
    for report in reports:
        found += [f"{each.invariant}: {each.sentence}" for each in report.violations]
    return list(dict.fromkeys(found))[:MOST_TOLD]
