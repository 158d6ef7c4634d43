"""Let a deployment look at memory's work, and change what it reads and writes.

A *hook* is any object, module or class with some of the functions named in ``LIFECYCLE`` and
``TRANSFORMS``, sync or async. Lifecycle hooks are told of a cycle; transforms take what goes
into a cycle or comes out of it, and return what takes its place, or None to leave it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from .engine.values import Message, Part, PartKind

logger = logging.getLogger(__name__)

LIFECYCLE = (
    "on_observation_start",
    "on_observation_end",
    "on_reflection_start",
    "on_reflection_end",
)
TRANSFORMS = (
    "before_observation",
    "after_observation",
    "before_reflection",
    "after_reflection",
)
Execution = Literal["await", "background"]
EXECUTIONS: tuple[Execution, ...] = ("background", "await")
Value = TypeVar("Value")


class HookFailed(ValueError):
    """Tell people which hook failed, and how."""


@dataclass(frozen=True)
class Occasion:
    """Tell a hook whose memory a cycle works on and why; at its end, what it used or how it failed.

    ``usage`` has ``model``, ``input_tokens``, ``output_tokens`` and ``cost`` as far as known.
    """

    thread: UUID | None
    resource: int | None
    trigger: str
    usage: Mapping[str, Any] | None = None
    error: BaseException | None = None


@dataclass
class Work:
    """Take what a cycle used, to be told to its end hooks."""

    usage: Mapping[str, Any] | None = None


@dataclass
class Hooks:
    """Run hooks in the order given.

    With ``execution`` "await" a cycle waits for its lifecycle hooks and fails with them; in the
    "background" it does neither, and failures are logged. Transforms are always waited for.
    """

    hooks: Sequence[object] = ()
    execution: Execution = "background"
    _running: set[asyncio.Task[None]] = field(default_factory=set, repr=False)

    async def transform(self, name: str, value: Value) -> Value:
        """Return what the transforms of a name make of a value. Raises HookFailed."""
        if name not in TRANSFORMS:
            raise ValueError(f"{name} is no transform; there are {', '.join(TRANSFORMS)}.")
        for function in self._named(name):
            changed = await _run(name, function, value)
            value = value if changed is None else changed
        return value

    @asynccontextmanager
    async def observing(self, occasion: Occasion) -> AsyncIterator[Work]:
        """Tell of an observation: of its start now, of its end after the block, failed or not.

        Raises HookFailed when hooks are awaited and one fails; the block's own error comes first.
        """
        async with self._around("observation", occasion) as work:
            yield work

    @asynccontextmanager
    async def reflecting(self, occasion: Occasion) -> AsyncIterator[Work]:
        """Tell of a reflection, as ``observing`` does of an observation."""
        async with self._around("reflection", occasion) as work:
            yield work

    async def settled(self) -> None:
        """Wait until no hook runs in the background."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    @asynccontextmanager
    async def _around(self, what: str, occasion: Occasion) -> AsyncIterator[Work]:
        work, started, error = Work(), None, None
        try:
            started = await self._tell(f"on_{what}_start", occasion)
            yield work
        except BaseException as raised:
            error = raised
            raise
        finally:
            ended = replace(occasion, usage=work.usage, error=error)
            await self._tell_end(f"on_{what}_end", ended, after=started)

    async def _tell_end(
        self, name: str, occasion: Occasion, *, after: asyncio.Task[None] | None
    ) -> None:
        try:
            await self._tell(name, occasion, after=after)
        except HookFailed as failed:
            if occasion.error is None:
                raise
            logger.warning("%s", failed)

    async def _tell(
        self, name: str, occasion: Occasion, *, after: asyncio.Task[None] | None = None
    ) -> asyncio.Task[None] | None:
        functions = self._named(name)
        if not functions:
            return after
        if self.execution == "await":
            for function in functions:
                await _run(name, function, occasion)
            return None
        task = asyncio.ensure_future(_run_logged(name, functions, occasion, after))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _named(self, name: str) -> list[Callable[[Any], Any]]:
        return [found for hook in self.hooks if (found := getattr(hook, name, None)) is not None]


async def _run(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return await called(function, value)
    except Exception as error:
        # A hook is anybody's code: whatever it raises ends the cycle with its name.
        said = str(error).strip().splitlines()
        raise HookFailed(
            f"The hook {name} failed ({type(error).__name__}){': ' + said[0][:200] if said else ''}"
        ) from error


async def _run_logged(
    name: str,
    functions: Iterable[Callable[[Any], Any]],
    occasion: Occasion,
    after: asyncio.Task[None] | None,
) -> None:
    if after is not None:
        await asyncio.wait({after})
    for function in functions:
        try:
            await _run(name, function, occasion)
        except HookFailed as failed:
            logger.warning("%s", failed, exc_info=failed.__cause__)


async def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a sync or async function returns; a sync one runs beside the loop."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await sync_to_async(function)(*arguments)
    return await result if inspect.isawaitable(result) else result


def loaded(paths: Iterable[str]) -> tuple[object, ...]:
    """Return the hooks at dotted paths: modules, objects, or classes, made without arguments.

    Raises ImproperlyConfigured for a path without a hook, or a hook without a known function.
    """
    return tuple(_loaded(path) for path in paths)


def _loaded(path: str) -> object:
    try:
        found = _imported(path)
    except ImportError as error:
        raise ImproperlyConfigured(f"MEMORY_HOOKS = {path}: nothing is there ({error})") from error
    hook = found() if inspect.isclass(found) else found
    if not any(hasattr(hook, name) for name in (*LIFECYCLE, *TRANSFORMS)):
        raise ImproperlyConfigured(
            f"MEMORY_HOOKS = {path}: must have one of {', '.join((*LIFECYCLE, *TRANSFORMS))}"
        )
    return hook


def _imported(path: str) -> object:
    try:
        return import_string(path)
    except ImportError:
        return import_module(path)


@lru_cache
def configured() -> Hooks:
    """Return the hooks of the settings MEMORY_HOOKS and MEMORY_HOOK_EXECUTION."""
    return Hooks(
        loaded(getattr(settings, "MEMORY_HOOKS", ())),
        getattr(settings, "MEMORY_HOOK_EXECUTION", EXECUTIONS[0]),
    )


@dataclass(frozen=True)
class ResultRedactor:
    """Keep what some tools returned from the Observer; that they were called stays.

    A ready hook: ``ResultRedactor(("read_secret", "load_skill"))``.
    """

    tools: Sequence[str]
    instead: str = "[not shown to memory]"

    def before_observation(self, messages: Sequence[Message]) -> list[Message]:
        """Return copies without these results; the messages given stay as they are."""
        return [replace(m, parts=tuple(self._parts(m.parts))) for m in messages]

    def _parts(self, parts: Iterable[Part]) -> Iterable[Part]:
        for part in parts:
            if part.tool not in self.tools or part.kind is PartKind.CALL:
                yield part
            elif part.kind in (PartKind.RESULT, PartKind.FAILURE):
                yield replace(part, text=self.instead)
