"""Find what a command is about, and say in a sentence why it cannot be done."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from memory.models import MemoryRecord, Thread
from memory.services.change import Refused, Stale
from memory.services.look import record_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def add_author(parser: ArgumentParser) -> None:
    """Name the options that every change takes."""
    parser.add_argument("--author", metavar="NAME", help="the user who makes the change")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the history")


def author_of(name: str | None) -> User | None:
    """Return a user by name; None without one. Raises CommandError."""
    return None if name is None else user_of(name)


def user_of(name: str) -> User:
    """Return a user by name. Raises CommandError."""
    found: Any = get_user_model()._default_manager.filter(username=name).first()
    if found is None:
        raise CommandError(f"There is no user {name}.")
    user: User = found
    return user


def memory_of(pk: UUID) -> MemoryRecord:
    """Return a record by its id, or the open one of a conversation. Raises CommandError."""
    record = MemoryRecord.objects.filter(pk=pk).first()
    if record is not None:
        return record
    thread = Thread.objects.filter(pk=pk, remembers=True).first()
    if thread is None:
        raise CommandError(
            f"There is no memory {pk}; `om status` names the records and `om list` the "
            "conversations there are."
        )
    return record_of(thread)


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Turn what a service refuses into an error of the command, with both texts if stale."""
    try:
        yield
    except Stale as stale:
        now = f" It says now: “{stale.theirs}”." if stale.theirs else ""
        yours = f" Yours was: “{stale.yours}”." if stale.yours else ""
        raise CommandError(f"{stale}{now}{yours}") from None
    except Refused as refused:
        raise CommandError(str(refused)) from None
