"""Make ids that sort by time and cannot be guessed."""

from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a new UUIDv7."""
    return uuid7()


def first_id(at: datetime) -> UUID:
    """Return what no id made since a moment lies below: rows by time, found by their key."""
    return UUID(int=int(at.timestamp() * 1000) << 80)
