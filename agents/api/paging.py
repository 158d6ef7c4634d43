"""Hand out long lists page by page: a cursor names where the next page begins."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from ninja import Schema
from pydantic import Field

from .problems import Problem

Item = TypeVar("Item")
Row = TypeVar("Row")

MOST, USUAL = 200, 50
LARGEST = 2**62
BAD_CURSOR = "The cursor is not one this list gave. Leave it out to begin at the beginning."


class Page(Schema, Generic[Item]):
    """Hold some items of a list; ``next`` is the cursor of the page after it, if there is one."""

    items: list[Item]
    next: str | None = None


class Asked(Schema):
    """Say where a page begins and how long it is."""

    cursor: str | None = Field(None, description="The `next` of the page before.", max_length=500)
    limit: int = Field(USUAL, ge=1, le=MOST)


def written(*values: Any) -> str:
    """Return a cursor that holds some values."""
    text = json.dumps(values, default=str, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str | None, *kinds: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """Return the values a cursor holds; None without one. Raises Problem."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(urlsafe_b64decode(padded.encode()))
        return tuple(kind(value) for kind, value in zip(kinds, values, strict=True))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise Problem(422, BAD_CURSOR) from None


def number(value: Any) -> int:
    """Return a whole number that a database can hold. Raises ValueError."""
    if type(value) is not int or not -LARGEST < value < LARGEST:
        raise ValueError
    return value


def moment(value: Any) -> datetime:
    """Return a moment with its zone. Raises ValueError."""
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError
    return found


def key(value: Any) -> UUID:
    """Return an id. Raises ValueError."""
    return UUID(value)


def page(
    rows: Sequence[Row],
    limit: int,
    shape: Callable[[Row], Any],
    place: Callable[[Row], tuple[Any, ...]],
) -> dict[str, Any]:
    """Return a page of rows, one more of which was read than fit, if there is one more."""
    shown = rows[:limit]
    more = len(rows) > limit
    return {
        "items": [shape(row) for row in shown],
        "next": written(*place(shown[-1])) if more else None,
    }


def newest(rows: QuerySet[Any], asked: Asked, shape: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a page of rows, the newest first. Raises Problem."""
    after = read(asked.cursor, key)
    if after is not None:
        rows = rows.filter(pk__lt=after[0])
    # Ids rise with time, and compare alike in every database.
    found = list(rows.order_by("-pk")[: asked.limit + 1])
    return page(found, asked.limit, shape, lambda row: (row.pk,))
