"""Turn a row into JSON and back, field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models

from memory.models import Resource

Resolve = Callable[[str], int | None]


class BadValue(ValueError):
    """Say what is wrong with one value of a row."""


def as_json(value: Any) -> Any:
    """Return a value as JSON holds it; text, numbers and JSON stay as they are."""
    match value:
        case datetime():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case _:
            return value


def by_word(field: models.Field[Any, Any]) -> bool:
    """Tell whether a field's row is named by a word, since its number differs from site to site."""
    return field.is_relation and field.related_model is not None and not _is_uuid(field)


def of_resource(field: models.Field[Any, Any]) -> bool:
    """Tell whether a field leads to the resource."""
    return field.is_relation and field.related_model is Resource


def _is_uuid(field: models.Field[Any, Any]) -> bool:
    related: Any = field.related_model
    return isinstance(related._meta.pk, models.UUIDField)


def from_json(field: models.Field[Any, Any], row: Mapping[str, Any]) -> Any:
    """Return the value of a plain field from a row. Raises BadValue."""
    if field.name not in row:
        return _missing(field)
    given = row[field.name]
    if given is None:
        if not field.null:
            raise BadValue(f"{field.name} is null")
        return None
    if isinstance(field, models.JSONField):
        return given
    target: Any = field.target_field if field.is_relation else field  # type: ignore[attr-defined]
    try:
        value = target.to_python(given)
        target.run_validators(value)
    except (ValidationError, TypeError, ValueError, OverflowError):
        raise BadValue(f"{field.name} cannot be {str(given)[:60]!r}") from None
    choices = dict(field.flatchoices)
    if choices and value not in choices and value != "":
        raise BadValue(f"{field.name} cannot be {str(given)[:60]!r}")
    return value


def _missing(field: models.Field[Any, Any]) -> Any:
    # A file of an older version lacks what was added since, which has a default.
    if field.has_default() or field.null:
        return field.get_default()
    raise BadValue(f"{field.name} is missing")
