"""Make ids that sort by time and cannot be guessed."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a new UUIDv7."""
    return uuid7()
