"""Run everything in one thread and in a time of its own, so that a seed always tells one story.

What awaits a database goes on at once, what sleeps wakes when the harness lets time pass, and
nothing waits for a real clock.
"""

import asyncio
import selectors
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import django.utils.asyncio
from asgiref.sync import SyncToAsync
from django.db import connections


class _Selector(selectors.SelectSelector):
    loop = None

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("Everything waits, and nothing will ever come.")
        if timeout > 0:
            self.loop.now += timeout
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """Let time pass only while everything sleeps."""

    def __init__(self):
        selector = _Selector()
        selector.loop = self
        self.now = 0.0
        super().__init__(selector)
        self.set_default_executor(_AtOnce())

    def time(self):
        return self.now

    async def shutdown_default_executor(self, timeout=None):
        """Do nothing: there is no thread to wait for, and waiting for one takes a real clock."""


class _AtOnce(ThreadPoolExecutor):
    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


async def quiet():
    """Wait until all other tasks wait for something."""
    ready = asyncio.get_running_loop()._ready
    calm = 0
    while calm < 2:
        await asyncio.sleep(0)
        calm = 0 if ready else calm + 1


def run(main):
    """Run a coroutine on such a loop."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)


async def _inline(self, *args, **kwargs):
    return self.func(*args, **kwargs)


def _no_loop():
    raise RuntimeError("Nothing here waits for a database.")


def install():
    """Let code that awaits a thread run in this one, which alone has the connection."""
    SyncToAsync.__call__ = _inline
    connections._connections = SimpleNamespace()
    django.utils.asyncio.get_running_loop = _no_loop
