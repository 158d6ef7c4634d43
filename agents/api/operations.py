"""Answer for work on memory that somebody asks for, and for what the next request would hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context
from dataclasses import asdict
from functools import partial
from typing import Any, Literal
from uuid import UUID

from channels.db import database_sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from agents.access import Right
from agents.models import AgentProfile
from agents.secrets import masked
from agents.services.told import told
from memory.messages import user_prompt
from memory.services import compact as compacting
from memory.services import operate
from memory.services.asked import ask_for
from memory.services.change import Refused
from memory.services.foresee import foresee, state_ahead, view_ahead

from .reach import thread_for

router = Router(tags=["Work on memory"])

Name = Literal["observe", "buffer", "activate", "reflect", "compact", "finalize"]
IN_BACKGROUND = ("observe", "buffer", "activate", "reflect")


class How(Schema):
    """Say what to mind, for a reflection, and how much may stay raw, for a compaction."""

    wait: bool = Field(False, description="Answer when it is done, with what was done.")
    focus: str = Field("", max_length=2_000)
    target_tokens: int = Field(0, ge=0)


NO_HOW = How(wait=False, focus="", target_tokens=0)


class Accepted(Schema):
    """Say that the work is under way; its cycles show how far it is."""

    operation: str
    cycles: str


class Outcome(Schema):
    """Say what was done: gauges before and after, cycles done and failed, chunks shown."""

    operation: str
    well: bool
    before: dict[str, int]
    after: dict[str, int]
    done: int
    failed: int
    activated: int
    late: bool
    why: str


class Block(Schema):
    """Describe one part of a request; ``text`` is what it says, where it is no stored message."""

    kind: str
    source: str
    tokens: int
    position: int | None = None
    text: str | None = None


class Request(Schema):
    """Describe what would be sent; ``cacheable`` tokens are the same as in the request before."""

    revision: int
    tokens: int
    cacheable: int
    window: int | None
    blocks: list[Block]


@router.post(
    "/threads/{uuid:thread_id}/operations/{name}",
    response={202: Accepted, 200: Outcome},
    summary="Observe, buffer, activate, reflect, compact or finalize",
)
def operation(request: HttpRequest, thread_id: UUID, name: Name, given: How = NO_HOW) -> Any:
    """Work on a memory now, whatever its thresholds say.

    Without `wait` the work goes on in the background (202); compacting and finalizing always wait.
    """
    thread_for(request, thread_id, Right.OPERATE)
    operate.remembered(thread_id)
    if name in IN_BACKGROUND and not given.wait:
        ask_for(name, thread_id)
        accepted = {"operation": name, "cycles": f"/api/v1/threads/{thread_id}/cycles"}
        return HttpResponse(json.dumps(accepted), status=202, content_type="application/json")
    # The models are awaited while the answer is sent: no thread of the database waits for them.
    done = _written(name, _act(name, thread_id, given))
    return StreamingHttpResponse(done, content_type="application/json")


def _act(name: str, thread_id: UUID, given: How = NO_HOW) -> Coroutine[Any, Any, operate.Outcome]:
    acts: dict[str, Callable[..., Coroutine[Any, Any, operate.Outcome]]] = {
        "observe": operate.observe_now,
        "buffer": operate.buffer_now,
        "activate": operate.activate_now,
        "reflect": partial(operate.reflect_now, focus=given.focus),
        "compact": partial(compacting.compact, target_tokens=given.target_tokens),
        "finalize": compacting.finalize,
    }
    return acts[name](thread_id)


async def _written(name: str, work: Coroutine[Any, Any, operate.Outcome]) -> AsyncIterator[str]:
    """Yield what was done, once it is; whoever leaves meanwhile does not end the work."""
    await database_sync_to_async(_let_go)()
    # In a context of its own, the work takes the process's thread instead of this request's.
    task = asyncio.get_running_loop().create_task(work, context=Context())
    try:
        outcome = await asyncio.shield(task)
    except Refused as refusal:
        yield json.dumps({"operation": name, "well": False, "why": str(refusal)})
        return
    yield json.dumps({"operation": name, "well": outcome.well, **asdict(outcome)})


def _let_go() -> None:
    """Do nothing, in a thread whose connection is given back after it."""


@router.get("/threads/{uuid:thread_id}/context", response=Request, summary="Foresee the request")
def context(request: HttpRequest, thread_id: UUID, text: str = "") -> dict[str, Any]:
    """Tell what the next request would hold, block by block, if this text were sent now.

    What has the shape of a key is masked, as in the context inspector.
    """
    thread_for(request, thread_id)
    state = state_ahead(thread_id)
    view, now = view_ahead(state), timezone.now()
    profile = AgentProfile.objects.filter(slug=state.thread.agent).first()
    besides = told(profile, view.options if view else None)
    always = sum(each.tokens for each in besides)
    ahead = foresee(state, view, user_prompt(text or "…", now), at=now, overhead=always)
    prepared = ahead.prepared
    return {
        "revision": prepared.revision,
        "tokens": always + prepared.tokens,
        "cacheable": always + prepared.cacheable,
        "window": ahead.window,
        "blocks": [
            *(Block(**each.summary(), text=masked(each.text)) for each in besides),
            *(
                Block(
                    kind=block.kind,
                    source=block.source,
                    tokens=block.tokens,
                    position=block.position,
                    text=masked(block.text) or None,
                )
                for block in prepared.blocks
            ),
        ],
    }
