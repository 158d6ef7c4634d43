"""Tell a database that is away, or too busy, from a mistake of ours, and say what to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5
SENTENCE = (
    "The database does not answer, or is too busy. What was stored before is safe, and nothing was "
    "stored halfway. Try again in a few seconds."
)

#: How long to wait before something is written again: in all, less than a lease lasts.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

_Result = TypeVar("_Result")

#: Classes of SQLSTATE that pass: connections, conflicts between transactions, lack of resources,
#: locks that were not to be had, and a server that starts or ends.
_PASSING = frozenset({"08", "40", "53", "55", "57"})
_BUSY_FILE = "database is locked"


def is_away(error: BaseException | None) -> bool:
    """Tell whether an error is the database's, and will pass by itself."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause = error.__cause__
    if cause is None or type(cause).__module__.startswith("sqlite3"):
        return _BUSY_FILE in str(error)
    state = getattr(cause, "sqlstate", None)
    return state is None or state[:2] in _PASSING


async def insist(write: Callable[[], _Result], pauses: Sequence[float] = PAUSES) -> _Result:
    """Write, and again after each pause while the database is away. Raises what the last try does.

    For what would be lost otherwise: nobody is there to send it again.
    """
    for pause in pauses:
        try:
            return await sync_to_async(write)()
        except Exception as error:
            if not is_away(error):
                raise
            logger.warning("The database is away; it is written to again in %s s.", pause)
        await asyncio.sleep(pause)
        await sync_to_async(close_old_connections)()
    return await sync_to_async(write)()
