"""Foresee the next request of a thread for its page, with what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Count, Q, Sum

from agents.models import AgentProfile, Turn
from agents.services.attach import contents
from agents.services.told import Told, request_hash, told
from agents.studio.context.asked import Asked
from agents.studio.context.inspected import (
    PROMPT,
    SHOWN_OF_TEXT,
    Inspected,
    Said,
    parts_of,
    said_in,
)
from agents.studio.context.predictions import Prediction, remember
from memory.messages import user_prompt
from memory.models import Message, Thread
from memory.models.state import State
from memory.services.early import gap_before
from memory.services.foresee import Foreseen, foresee, state_ahead, view_ahead
from memory.services.look import View
from memory.services.suppose import in_scope

NEXT = "next"
MOST_READS = 5


class Ahead:
    """Read what the next request of a thread is made of; each thing once, when it is asked for."""

    def __init__(self, thread: Thread, now: datetime, asked: Asked | None = None) -> None:
        self.thread_id = thread.pk
        self.now = now
        self.asked = asked or Asked()

    @cached_property
    def _read(self) -> tuple[State, View | None]:
        # A view is None too when memory moved on between two statements: then all is read again.
        for _ in range(MOST_READS):
            state = state_ahead(self.thread_id, self.asked.options)
            view = view_ahead(state)
            if view is not None or not state.thread.remembers:
                break
        if view is not None and self.asked.scope:
            view = in_scope(view, self.asked.scope)
        return state, view

    @property
    def state(self) -> State:
        """Return the thread and its record."""
        return self._read[0]

    @property
    def view(self) -> View | None:
        """Return the memory before the request; None for a thread that does not remember."""
        return self._read[1]

    @cached_property
    def profile(self) -> AgentProfile | None:
        """Return the agent that will answer."""
        return AgentProfile.objects.filter(slug=self.state.thread.agent).first()

    @cached_property
    def open_turns(self) -> Sequence[Turn]:
        """Return the turn that runs, if one does, and those that wait, in order."""
        states = (Turn.Status.RUNNING, Turn.Status.WAITING)
        found = Turn.objects.filter(thread=self.thread_id, status__in=states)
        return list(found.order_by("status", "number"))

    @property
    def running(self) -> Turn | None:
        """Return the turn under way."""
        return next((t for t in self.open_turns if t.status == Turn.Status.RUNNING), None)

    @property
    def waiting(self) -> Sequence[Turn]:
        """Return the prompts whose turn has not come."""
        return [turn for turn in self.open_turns if turn.status == Turn.Status.WAITING]

    @property
    def prompt(self) -> str:
        """Return the text the next turn begins with: the draft, else what waits first."""
        if self.asked.draft or not self.waiting:
            return self.asked.draft
        return self.waiting[0].prompt

    @cached_property
    def told(self) -> Sequence[Told]:
        """Return the agent's instructions and tools."""
        found = told(self.profile, self.view.options if self.view is not None else None)
        return [each for each in found if each.kind not in self.asked.drop]

    @cached_property
    def foreseen(self) -> Foreseen:
        """Return the request, made as the real one will be."""
        queued = not self.asked.draft and self.waiting
        message = user_prompt(
            self.prompt,
            self.now,
            attachments=contents(self.waiting[0].attachments) if queued else (),
            gap=gap_before(self.state, self.now),
        )
        return foresee(
            self.state,
            self.view,
            message,
            at=self.now,
            overhead=sum(each.tokens for each in self.told),
            everything=self.asked.activate,
        )

    @cached_property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        """Return the blocks as they would be kept of the request."""
        dropped, prepared = self.asked.drop, self.foreseen.prepared
        kept = [block for block in prepared.summary() if block["kind"] not in dropped]
        return [*(each.summary() for each in self.told), *kept]

    @property
    def total(self) -> int:
        """Return the tokens of all that would be sent."""
        prepared = self.foreseen.prepared
        dropped = [block.tokens for block in prepared.blocks if block.kind in self.asked.drop]
        return sum(each.tokens for each in self.told) + prepared.tokens - sum(dropped)

    @property
    def window(self) -> int | None:
        """Return what the model takes in, None when nobody knows."""
        return self.foreseen.window

    @cached_property
    def hash(self) -> str:
        """Return the hash the request would have."""
        return request_hash(self.told, self.foreseen.prepared)

    @cached_property
    def inspected(self) -> Inspected:
        """Return the request block by block."""
        return self._inspected(said_in(self.thread_id, self.blocks))

    def _inspected(self, said: Mapping[int, Said]) -> Inspected:
        prepared = self.foreseen.prepared
        texts = {each.hash: each.text for each in self.told}
        texts |= {block.hash: block.text for block in prepared.blocks if block.text}
        return Inspected(
            key=NEXT,
            parts=parts_of(self.blocks, texts, {**said, **self._draft}),
            total=self.total,
            hash=self.hash,
            revision=prepared.revision,
            window=self.window,
        )

    @property
    def _draft(self) -> dict[int, Said]:
        row = self.foreseen.prompt
        text = self.prompt[:SHOWN_OF_TEXT]
        said = Said(row.position, PROMPT, row.tokens, text, self.now, draft=True)
        return {row.position: said}

    @cached_property
    def observed(self) -> dict[str, int]:
        """Count the thread's messages: ``all``, and those that are lines in this request."""
        view = self.foreseen.prepared.view
        covered = Q(position__lte=view.observed_through if view is not None else 0)
        return Message.objects.filter(thread=self.thread_id).aggregate(
            messages=Count("pk", filter=covered),
            tokens=Sum("tokens", filter=covered, default=0),
            all=Count("pk"),
        )

    @property
    def stored(self) -> int:
        """Return how many messages the thread has."""
        return self.observed["all"]

    def note(self) -> None:
        """Remember what is foreseen, unless something is only supposed."""
        if self.asked.supposes:
            return
        found = Prediction(
            at=self.now.isoformat(timespec="seconds"),
            hash=self.hash,
            revision=self.foreseen.prepared.revision,
            blocks=tuple(dict(block) for block in self.blocks),
        )
        remember(self.thread_id, self.foreseen.prompt.position, found)
