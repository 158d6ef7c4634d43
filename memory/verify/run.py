"""Check everything, or one record or thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.models import MemoryRecord, Thread

from .coverage import check_coverage
from .cycles import check_cycles
from .discarded import check_rows
from .forks import check_copies, check_erased, check_fork
from .lines import check_lines
from .media import check_media
from .messages import Scan, scan
from .records import check_forgetful, check_open, check_record
from .reflections import check_reflections
from .report import Report, Violation
from .revisions import check_revisions
from .rows import Memory, Row, load, one_moment

CHECKS: tuple[Callable[[Memory], Iterable[Violation]], ...] = (
    check_record,
    check_revisions,
    check_lines,
    check_reflections,
    check_cycles,
    check_rows,
    check_copies,
)


class Unknown(LookupError):
    """Say which record or thread there is none of."""


def verify(
    *,
    record: UUID | None = None,
    thread: UUID | None = None,
    running: Callable[[], Mapping[UUID, int]] = dict,
) -> Report:
    """Recompute every invariant from the raw rows, as of one moment, and return what was found.

    ``record`` and ``thread`` narrow it to one of them, without media. ``running`` tells where
    the running turn of each thread begins: only its tool calls may wait for a result.
    Raises Unknown.
    """
    with one_moment():
        records, threads = _chosen(record, thread)
        turns = running()
        checked: Counter[str] = Counter(threads=len(threads), records=len(records))
        scans = {row["id"]: scan(row, running_from=turns.get(row["id"])) for row in threads}
        checked["messages"] = sum(len(scanned.positions) for scanned in scans.values())
        violations = [*_of_threads(scans), *_of_records(records, scans, checked)]
        if record is None and thread is None:
            violations += check_media(checked)
    return Report({table: n for table, n in checked.items() if n}, tuple(violations))


def _chosen(record: UUID | None, thread: UUID | None) -> tuple[list[Row], list[Row]]:
    records, threads = MemoryRecord.objects.all(), Thread.objects.all()
    if record is not None:
        records = records.filter(pk=record)
        threads = threads.filter(Q(records=record) | Q(cursors__record=record)).distinct()
        _known(records.exists(), "record", record)
    if thread is not None:
        chosen = Thread.objects.filter(pk=thread)
        _known(chosen.exists(), "thread", thread)
        threads = threads.filter(pk=thread)
        of_resource = Q(scope=MemoryRecord.Scope.RESOURCE, resource__in=chosen.values("resource"))
        records = records.filter(Q(thread=thread) | of_resource)
    return list(records.order_by("id").values()), list(threads.order_by("id").values())


def _known(exists: bool, table: str, pk: UUID) -> None:
    if not exists:
        raise Unknown(f"There is no {table} {pk}.")


def _of_threads(scans: dict[Any, Scan]) -> Iterator[Violation]:
    for scanned in scans.values():
        yield from scanned.violations
        yield from check_forgetful(scanned.thread)
        yield from check_fork(scanned.thread)
        yield from check_erased(scanned.thread)


def _of_records(
    records: list[Row], scans: dict[Any, Scan], checked: Counter[str]
) -> Iterator[Violation]:
    yield from check_open(records)
    for row in records:
        memory = load(row)
        for table in ("observations", "lines", "revisions", "cycles"):
            checked[table] += len(getattr(memory, table))
        for check in CHECKS:
            yield from check(memory)
        for thread_id in memory.threads:
            if thread_id in scans:
                yield from check_coverage(memory, scans[thread_id])
