"""Answer the home page."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.access import Right, may, require
from agents.demo import world
from agents.studio.respond import respond

from .attention import Attention
from .board import Board

REGIONS = ("attention", "running", "recent", "spent")
_CONVERSING: set[asyncio.Task[Any]] = set()


@never_cache
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Show what needs attention, what runs, what is recent and what it cost today."""
    board = Board(request.user, timezone.now())
    context = {
        "board": board,
        "attention": Attention(board).items,
        "may_load": may(request.user, Right.ADMIN),
    }
    return respond(
        request,
        "studio/home/page.html",
        context,
        page="home",
        regions=REGIONS,
        watch=board.watch,
    )


@require_POST
async def load_demo(request: HttpRequest) -> HttpResponse:
    """Create the demo's people, agents and conversation, which then fills by itself."""
    thread = await sync_to_async(_begin)(request)
    if thread is None:
        return redirect("home")
    # It goes on after this answer; the set keeps it from being collected meanwhile.
    task = asyncio.create_task(world.converse(thread, lambda progress: None))
    _CONVERSING.add(task)
    task.add_done_callback(_CONVERSING.discard)
    return redirect("chat", thread.pk)


def _begin(request: HttpRequest) -> Any:
    require(request, Right.ADMIN)
    world.create()
    return world.unfinished()
