"""Do again what the database gave up, so that nobody is told of a deadlock they had no part in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

TRIES = 4
#: A deadlock was found, or transactions that cannot both stand: SQLSTATE of PostgreSQL.
_GIVEN_UP = frozenset({"40P01", "40001"})

_Asked = ParamSpec("_Asked")
_Given = TypeVar("_Given")


def anew(work: Callable[_Asked, _Given]) -> Callable[_Asked, _Given]:
    """Return work that begins anew when the database gave it up: nothing of it was written.

    Several times at most. Inside somebody's transaction it is theirs to begin anew. Raises what
    the work does.
    """

    @wraps(work)
    def tried(*args: _Asked.args, **kwargs: _Asked.kwargs) -> _Given:
        for _ in range(TRIES - 1):
            if connection.in_atomic_block:
                break
            try:
                return work(*args, **kwargs)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in _GIVEN_UP:
                    raise
                logger.info("%s was given up by the database and begins anew.", work.__name__)
        return work(*args, **kwargs)

    return tried
