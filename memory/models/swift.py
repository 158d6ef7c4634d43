"""Send the few statements of every turn without composing them anew each time.

The ORM needs longer to compose a small UPDATE than PostgreSQL to carry it out. What is sent a
dozen times a turn is therefore composed once for each shape and kept; values still go through
their fields, so that both databases store what the ORM would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db import connection, models

Converter = Callable[[Any], Any]

_NOW = {
    "postgresql": "STATEMENT_TIMESTAMP()",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')",
}
_LATER = {
    "postgresql": "(STATEMENT_TIMESTAMP() + %s)",
    "sqlite": "django_format_dtdelta('+', STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW'), %s)",
}


def now_in_sql() -> str:
    """Return the database's clock as it is written into a statement with parameters."""
    return _NOW[connection.vendor]


@dataclass(frozen=True, slots=True)
class FromNow:
    """Stand for a time after the database's now; without a delay, for now."""

    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Plus:
    """Stand for a column's own value raised by a number."""

    number: int


def swap(
    model: type[models.Model],
    where: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    returning: Sequence[str] = (),
) -> tuple[Any, ...] | None:
    """Update the one row that is as ``where`` says; return its ``returning`` fields.

    None when no row is: then nothing was changed. Fields are named as in the model; a value is
    plain, ``FromNow`` or ``Plus``, and None in ``where`` asks for NULL. Raises IntegrityError.
    """
    shape = tuple((name, _shape(value)) for name, value in changes.items())
    tests = tuple((name, value is None) for name, value in where.items())
    sql = _update(connection.vendor, model, tests, shape, tuple(returning))
    given = [value for name, value in changes.items() for value in _given(model, name, value)]
    tested = [_prepared(model, name, v) for name, v in where.items() if v is not None]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, *tested])
        if not returning:
            return () if cursor.rowcount else None
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def insert(
    row: models.Model,
    *,
    beside: type[models.Model] | None = None,
    where: Mapping[str, Any] | None = None,
) -> bool:
    """Insert a row as it is; a key the database makes is not read back. Raises IntegrityError.

    With ``beside`` only while a row of that model is as ``where`` says, which it then stays
    until the transaction ends. Return whether the row was inserted.
    """
    model, where = type(row), where or {}
    tests = tuple((name, value is None) for name, value in where.items())
    sql, names = _insert(connection.vendor, model, row.pk is not None, beside, tests)
    values = [_prepared(model, name, getattr(row, name)) for name in names]
    if beside is not None:
        values += [_prepared(beside, name, v) for name, v in where.items() if v is not None]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        if not cursor.rowcount:
            return False
    row._state.adding = False
    row._state.db = connection.alias
    return True


def columns(model: type[models.Model], alias: str) -> str:
    """Return the columns of a table under an alias, as ``read_row`` takes them."""
    return ", ".join(f"{alias}.{field.column}" for field in model._meta.concrete_fields)


def width(model: type[models.Model]) -> int:
    """Return how many columns a row of a model has."""
    return len(model._meta.concrete_fields)


def read_row(model: type[models.Model], row: Sequence[Any], at: int = 0) -> Any:
    """Return the instance whose columns begin somewhere in a row, as the ORM would make it."""
    names, readers = _readers(connection.vendor, model)
    values = [
        value if read is None else read(value)
        for read, value in zip(readers, row[at : at + len(names)], strict=True)
    ]
    return model.from_db(connection.alias, names, values)


@lru_cache
def _readers(
    vendor: str, model: type[models.Model]
) -> tuple[Sequence[str], Sequence[Converter | None]]:
    fields = model._meta.concrete_fields
    readers = [converter(field) if _converters(field) else None for field in fields]
    return [field.attname for field in fields], readers


def converter(field: models.Field[Any, Any]) -> Converter:
    """Return what turns a value of the driver into one of the field."""
    steps, expression = _converters(field), field.get_col(field.model._meta.db_table)

    def convert(value: Any) -> Any:
        for step in steps:
            value = step(value, expression, connection)
        return value

    return convert


def _converters(field: models.Field[Any, Any]) -> list[Any]:
    expression = field.get_col(field.model._meta.db_table)
    return [
        *connection.ops.get_db_converters(expression),
        *expression.get_db_converters(connection),
    ]


def _shape(value: Any) -> str:
    match value:
        case FromNow(delay=None):
            return "now"
        case FromNow():
            return "later"
        case Plus():
            return "plus"
        case _:
            return "value"


def _given(model: type[models.Model], name: str, value: Any) -> list[Any]:
    match value:
        case FromNow(delay=None):
            return []
        case FromNow(delay=delay):
            return [_DURATION.get_db_prep_value(delay, connection)]
        case Plus(number=number):
            return [number]
        case _:
            return [_prepared(model, name, value)]


_DURATION: models.DurationField[Any, Any] = models.DurationField()


def _prepared(model: type[models.Model], name: str, value: Any) -> Any:
    return _field(model, name).get_db_prep_save(value, connection)


@lru_cache(maxsize=1024)
def _field(model: type[models.Model], name: str) -> Any:
    if name == "pk":
        return model._meta.pk
    return next(f for f in model._meta.concrete_fields if name in (f.name, f.attname))


@lru_cache(maxsize=1024)
def _update(
    vendor: str,
    model: type[models.Model],
    where: tuple[tuple[str, bool], ...],
    changes: tuple[tuple[str, str], ...],
    returning: tuple[str, ...],
) -> str:
    def value(name: str, shape: str) -> str:
        plus = f"{_column(model, name)} + %s"
        return {"now": _NOW[vendor], "later": _LATER[vendor], "plus": plus}.get(shape, "%s")

    sets = ", ".join(f"{_column(model, name)} = {value(name, shape)}" for name, shape in changes)
    named = ", ".join(_column(model, name) for name in returning)
    found = f" RETURNING {named}" if returning else ""
    return f"UPDATE {_table(model)} SET {sets} WHERE {_tests(model, where)}{found}"


@lru_cache(maxsize=256)
def _insert(
    vendor: str,
    model: type[models.Model],
    keyed: bool,
    beside: type[models.Model] | None,
    where: tuple[tuple[str, bool], ...],
) -> tuple[str, tuple[str, ...]]:
    fields = [
        field for field in model._meta.concrete_fields if not (field.primary_key and not keyed)
    ]
    names = tuple(field.attname for field in fields)
    columns = ", ".join(_column(model, name) for name in names)
    places = ", ".join(["%s"] * len(fields))
    if beside is None:
        rows = f"VALUES ({places})"
    else:
        # SQLite lets one transaction write at a time, and needs no lock.
        lock = " FOR SHARE" if vendor == "postgresql" else ""
        rows = f"SELECT {places} FROM {_table(beside)} WHERE {_tests(beside, where)}{lock}"
    return f"INSERT INTO {_table(model)} ({columns}) {rows}", names


def _tests(model: type[models.Model], where: tuple[tuple[str, bool], ...]) -> str:
    return " AND ".join(
        f"{_column(model, name)} IS NULL" if null else f"{_column(model, name)} = %s"
        for name, null in where
    )


def _column(model: type[models.Model], name: str) -> str:
    return connection.ops.quote_name(_field(model, name).column)


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
