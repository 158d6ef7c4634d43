"""Decide which threads a recall may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q

from memory.config import MemoryOptions, Retrieval, effective
from memory.engine.recall import CURRENT, Refused
from memory.models import Thread
from memory.services.look import record_of

Scope = Literal["thread", "resource"]

OFF = "Recall is switched off for this conversation. Answer from what you can see."


@dataclass(frozen=True)
class Reach:
    """Hold the thread a recall is called in, and how far it may look from there."""

    thread: Thread
    scope: Scope

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone that times are told in."""
        return ZoneInfo(self.thread.resource.time_zone)

    @property
    def id(self) -> UUID:
        """Return the id of the thread the recall is called in."""
        return self.thread.pk

    def threads(self) -> Q:
        """Select the threads within reach: the own one, and remembered ones of its resource.

        A thread that was kept out of memory, or made in the lab, is seen from itself alone.
        """
        if self.scope == "thread":
            return Q(pk=self.thread.pk)
        others = Q(resource=self.thread.resource_id, remembers=True, is_lab=False)
        others &= Q(deleted_at__isnull=True)
        return Q(pk=self.thread.pk) | others

    def thread_named(self, name: str) -> Thread:
        """Return the thread meant: ``current``, or one within reach by its id. Raises Refused."""
        name = name.strip()
        if name in ("", CURRENT, str(self.thread.pk)):
            return self.thread
        if self.scope == "thread":
            raise Refused(
                "Only this conversation can be recalled. Leave thread out, or give "
                f'thread="{CURRENT}".'
            )
        thread_id = _id(name)
        found = thread_id and Thread.objects.filter(self.threads(), pk=thread_id).first()
        if not found:
            # Whether somebody else has such a thread is not told.
            raise Refused(
                "There is no such conversation among those that can be recalled. "
                'mode="threads" lists them with their ids.'
            )
        return found


def reach_of(thread_id: UUID, scope: Scope | None = None) -> Reach:
    """Return how far a recall in a thread may look, at most ``scope``.

    Raises Refused when the options of its memory switch recalling off, and Thread.DoesNotExist.
    """
    thread = Thread.objects.select_related("resource").get(pk=thread_id)
    # A thread that is not remembered has no record, and none may be made for it.
    overrides = record_of(thread).config if thread.remembers else {}
    allowed = retrieval_of(effective(thread.agent, overrides), scope or "thread")
    if allowed is None:
        raise Refused(OFF)
    return Reach(thread, "thread" if scope == "thread" else allowed.scope)


def retrieval_of(options: MemoryOptions, unsaid: Scope = "thread") -> Retrieval | None:
    """Return what the options say about recalling: None when off, ``unsaid`` when nothing."""
    if "retrieval" in options.model_fields_set:
        return options.retrieval
    return Retrieval(scope=unsaid)


def _id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None
