"""Pretend to be several processes: each with caches, turns and cycles of its own, and mortal.

A process dies before a statement, wherever that is: its transaction is rolled back, and none
of its tasks reaches the database again. What it left is for leases and the others.
"""

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar

from memory.services import kept

from .models import Models

current = ContextVar("current", default=None)


class Killed(BaseException):
    """End a process; nothing catches it."""


class Process:
    """Hold what one process knows and does."""

    def __init__(self, name, world):
        self.name = name
        self.world = world
        self.taken = set()
        self.caches = {}
        self.tasks = {}
        self.fuse = None
        self.dead = False
        self.models = Models(self, world)

    def start(self, what, coroutine):
        """Run a coroutine as this process, beside what it does already."""
        with self.acting():
            self.tasks[what] = asyncio.get_running_loop().create_task(coroutine)
        return self.tasks[what]

    def busy(self, what):
        """Tell whether this process is at something still."""
        task = self.tasks.get(what)
        return task is not None and not task.done()

    @contextmanager
    def acting(self):
        """Do what follows as this process."""
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    def others_first(self, sql):
        """Let another process commit before this one takes the row that both want.

        SQLite lets one transaction write at a time; PostgreSQL lets others commit between what
        a transaction has read and the first row it takes. That is played here on SQLite too.
        """
        if sql.startswith("BEGIN"):
            self.taken.clear()
        if not sql.startswith("UPDATE"):
            return
        bare = sql.replace('"', "")
        for beginning, what in TAKES.items():
            if bare.startswith(beginning) and what not in self.taken:
                self.taken.add(what)
                self.world.before_taking(self, what)

    def before_statement(self, sql):
        """Die here, if this is where; nobody acts after death. Raises Killed."""
        if sql.startswith(("ROLLBACK", "RELEASE", "SAVEPOINT")):
            return
        if self.fuse is not None and not self.dead:
            self.fuse -= 1
            self.dead = self.fuse < 0
        if self.dead:
            raise Killed


TAKES = {"UPDATE memory_memoryrecord": "record", "UPDATE memory_thread SET last_position": "thread"}


class _OfProcess:
    """Keep a cache for each process apart."""

    def __init__(self, name, most):
        self._name = name
        self._most = most

    def _own(self):
        process = current.get()
        caches = _shared if process is None else process.caches
        if self._name not in caches:
            caches[self._name] = kept.Recent(self._most)
        return caches[self._name]

    def get(self, key):
        return self._own().get(key)

    def put(self, key, value):
        self._own().put(key, value)

    def clear(self):
        self._own().clear()


_Recent = kept.Recent
_shared = {}


def install():
    """Give every process its own caches."""
    for name, value in list(vars(kept).items()):
        if isinstance(value, _Recent):
            setattr(kept, name, _OfProcess(name, value._most))


def guard(execute, sql, params, many, context):
    """Let only the living reach the database, and others before they take a row."""
    process = current.get()
    if process is not None:
        process.before_statement(sql)
        process.others_first(sql)
    return execute(sql, params, many, context)


@contextmanager
def harness():
    """Do what follows as nobody: it is never killed and has no caches to speak of."""
    token = current.set(None)
    _shared.clear()
    try:
        yield
    finally:
        current.reset(token)
