"""Keep open pages equal to the rows: named regions, when each is stale, rendered once for all.

Theory of operation
-------------------
A page consists of regions. Each is rendered from rows alone and carries a digest of its own
HTML, its *etag*. An event marks the regions it can change; after a moment they are rendered in
one database hop, once per thread and process, and whoever shows another etag is sent them
whole. Nothing depends on an event: a lost one is found by the watch, which compares a small
*stamp* of every open thread with the one each region was rendered at; a doubled one changes
nothing; a lost frame is found by the page, which tells its etags now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2s
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject, Length
from django.template.loader import get_template

from agents import markers, panel, words
from agents.log import log_of, reply_words
from agents.models import Turn
from agents.page import Scene
from memory.models import Cycle, MemoryRecord, Message, Thread

#: Which regions an event of a kind can change.
REGIONS: dict[str, tuple[str, ...]] = {
    "messages.appended": ("title", "entries", "draft", "gauges", "threads"),
    "cycle.started": ("entries", "turnbar", "gauges", "operations", "threads"),
    "cycle.finished": ("entries", "turnbar", "gauges", "operations", "chunks", "threads"),
    "cycle.failed": ("entries", "turnbar", "gauges", "operations", "threads"),
    "memory.activated": ("entries", "gauges", "chunks", "task", "observations"),
    "memory.reflected": ("entries", "gauges", "observations", "generations"),
    "thread.renamed": ("title", "threads"),
    "turn.queued": ("queue", "turnbar", "threads"),
    "turn.withdrawn": ("queue", "turnbar"),
    "turn.started": ("queue", "turnbar", "threads"),
    "turn.delta": ("draft",),
    "turn.closed": ("entries", "draft", "turnbar", "threads"),
}

#: Which parts of a stamp a region depends on.
STAMPED: dict[str, tuple[str, ...]] = {
    "threads": ("activity", "turn", "cycle", "title"),
    "title": ("title", "position"),
    "entries": ("position", "turn", "revision", "cycle"),
    "draft": ("turn", "position", "draft"),
    "queue": ("turn",),
    "turnbar": ("turn", "cycle"),
    "gauges": ("position", "revision", "cycle"),
    "operations": ("cycle",),
    "chunks": ("revision", "cycle"),
    "task": ("revision",),
    "observations": ("revision",),
    "generations": ("revision",),
}
NAMES = tuple(STAMPED)

Stamp = Mapping[str, Any]

_CLOCKS = re.compile(r"(<time [^>]*data-(?:elapsed|ago)[^>]*>)[^<]*")


@dataclass(frozen=True)
class Rendered:
    """Hold the HTML of one region and the digest by which pages tell whether theirs is this."""

    name: str
    etag: str
    html: str

    @property
    def partial(self) -> str:
        """Return the region as the browser takes it in place of its own."""
        swap = f'hx-target="#{self.name}" hx-swap="outerMorph"'
        return f"<hx-partial {swap}>{self.html}</hx-partial>"


@dataclass(frozen=True)
class Delta:
    """Hold what a running turn was last heard to say after the message at a position."""

    turn: int
    after: int
    text: str

    def outdates(self, other: Delta) -> bool:
        """Tell whether the other is no news: it came late, or twice."""
        return (other.turn, other.after, len(other.text)) <= (self.turn, self.after, len(self.text))


def render(
    thread_id: UUID,
    names: Collection[str],
    *,
    now: datetime,
    start: int | None = None,
    heard: Delta | None = None,
) -> dict[str, Rendered]:
    """Return regions of a thread, rendered from rows. Raises Thread.DoesNotExist.

    ``start`` moves the beginning of the log back; ``heard`` is newer than the stored draft.
    """
    scene = Scene(thread_id, now, start=start)
    scene.thread  # noqa: B018 - a thread that is gone is told at once, whatever is asked for
    return {
        name: _rendered(name, draft_of(scene, heard) if name == "draft" else CONTEXTS[name](scene))
        for name in NAMES
        if name in names
    }


def render_heard(delta: Delta) -> Rendered:
    """Return the draft region for a text just heard; no query is made."""
    return _rendered("draft", {"draft": delta.text})


def _rendered(name: str, context: Mapping[str, Any]) -> Rendered:
    html = get_template(f"chat/regions.html#{name}").render({"etag": "", **context}).strip()
    etag = blake2s(_CLOCKS.sub(r"\1", html).encode(), digest_size=6).hexdigest()
    return Rendered(name, etag, html.replace('data-etag=""', f'data-etag="{etag}"', 1))


def draft_of(scene: Scene, heard: Delta | None = None) -> dict[str, Any]:
    """Return what the running turn has said beyond its stored messages."""
    turn = Turn.objects.running().filter(thread=scene.thread_id).first()
    if turn is None:
        return {"draft": ""}
    said = Message.objects.above(scene.thread_id, turn.first_position or 0)
    last, stored = said.order_by("-position").values_list("position", "text").first() or (0, "")
    if heard is not None and heard.turn == turn.number and heard.after >= last:
        return {"draft": heard.text}
    # The stored draft lags behind: what has become a message must not be shown twice.
    return {"draft": "" if turn.draft_text.strip() in stored else turn.draft_text}


def _threads(scene: Scene) -> dict[str, Any]:
    return {"rows": thread_rows(scene.siblings, scene.now, current=scene.thread_id)}


def thread_rows(
    threads: Iterable[Thread], now: datetime, current: UUID | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a list of threads."""
    return [
        {
            "id": thread.pk,
            "title": str(thread),
            "current": thread.pk == current,
            "doing": _doing(thread),
            "active_at": thread.last_active_at.isoformat(timespec="seconds"),
            "active_words": words.ago(now, thread.last_active_at),
        }
        for thread in threads
    ]


def _doing(thread: Any) -> str:
    if thread.cycle_kind:
        return markers.doing(thread.cycle_kind)
    return "Answering" if thread.answering else ""


def _title(scene: Scene) -> dict[str, Any]:
    agent = scene.agent
    model = agent.model_name if agent else ""
    title = {
        "text": str(scene.thread),
        "agent": agent.name if agent else scene.thread.agent,
        "model": model,
        "offline": model == "offline",
        "messages": scene.extent.messages,
    }
    return {"title": title}


def _entries(scene: Scene) -> dict[str, Any]:
    return {"log": log_of(scene, hint=panel.first_hint(scene))}


def _queue(scene: Scene) -> dict[str, Any]:
    waiting = [
        {
            "thread": scene.thread_id,
            "number": turn.number,
            "prompt": words.first_words(turn.prompt, 200),
        }
        for turn in scene.waiting_turns
    ]
    return {"waiting": waiting}


def _turnbar(scene: Scene) -> dict[str, Any]:
    bar: dict[str, Any] = {"thread": scene.thread_id}
    turn = scene.running_turn
    if turn is not None:
        since = (turn.started_at or turn.created_at).isoformat(timespec="seconds")
        bar |= {"running": True, "words": panel.at_work(scene), "since": since}
    elif scene.turns:
        bar |= _ended(scene.turns[0])
    return {"bar": bar}


def _ended(turn: Turn) -> dict[str, Any]:
    """Return the bar after the newest turn: an announcement, or a problem to try again."""
    if turn.status == Turn.Status.DONE:
        last = Message.objects.filter(thread=turn.thread_id, position=turn.last_position or 0)
        return {"say": reply_words(last.values_list("text", flat=True).first() or "")}
    problems = {
        Turn.Status.FAILED: turn.error or "The answer failed.",
        Turn.Status.INTERRUPTED: turn.error or "The answer was interrupted.",
        Turn.Status.STOPPED: "You stopped this answer.",
    }
    problem = problems.get(Turn.Status(turn.status), "")
    bad = turn.status == Turn.Status.FAILED
    return {"problem": problem, "bad": bad, "number": turn.number, "say": problem}


CONTEXTS: dict[str, Callable[[Scene], dict[str, Any]]] = {
    "threads": _threads,
    "title": _title,
    "entries": _entries,
    "draft": draft_of,
    "queue": _queue,
    "turnbar": _turnbar,
    "gauges": lambda scene: {"panel": panel.panel_of(scene)},
    "operations": lambda scene: {"work": panel.work_of(scene)},
    "chunks": lambda scene: {"chunks": panel.chunks_of(scene)},
    "task": lambda scene: {"hints": dict(zip(("task", "response"), scene.hints, strict=True))},
    "observations": lambda scene: {"seen": panel.seen_of(scene)},
    "generations": lambda scene: {"generations": panel.generations_of(scene)},
}


def stamps(thread_ids: Collection[UUID]) -> dict[UUID, Stamp]:
    """Return what moves when a page of these threads becomes stale, in one statement."""
    found = Thread.objects.filter(pk__in=thread_ids).values_list(
        "pk", "title", "last_position", _turn_stamp(), _memory_stamp(), _cycle_stamp(), _activity()
    )
    return {pk: _stamp(*parts) for pk, *parts in found}


def _stamp(title: str, position: int, turn: Any, memory: Any, cycle: Any, activity: Any) -> Stamp:
    turn = dict(turn or {})
    draft = turn.pop("draft", None)
    return {
        "title": title,
        "position": position,
        "turn": turn,
        "draft": draft,
        "revision": memory,
        "cycle": cycle,
        "activity": activity,
    }


def stale(rendered_at: Mapping[str, Stamp | None], now: Stamp) -> set[str]:
    """Return the regions whose part of the stamp is not what they were rendered at."""
    return {
        name
        for name, parts in STAMPED.items()
        if (then := rendered_at.get(name)) is None or any(then[p] != now[p] for p in parts)
    }


def _turn_stamp() -> Subquery:
    waiting, running = Q(status=Turn.Status.WAITING), Q(status=Turn.Status.RUNNING)
    return _one_of(
        Turn.objects.filter(thread=OuterRef("pk")),
        "thread",
        newest=Max("number"),
        waiting=Count("pk", filter=waiting),
        running=Max("number", filter=running),
        ended=Max("finished_at"),
        draft=Max(Length("draft_text"), filter=running),
    )


def _memory_stamp() -> Subquery:
    record = MemoryRecord.objects.filter(
        scope=MemoryRecord.Scope.THREAD, thread=OuterRef("pk"), closed_at__isnull=True
    )
    return Subquery(
        record.values(stamp=JSONObject(revision="revision", epoch="epoch", config="config"))[:1]
    )


def _cycle_stamp() -> Subquery:
    return _one_of(
        Cycle.objects.filter(thread=OuterRef("pk")),
        "thread",
        started=Max("started_at"),
        ended=Max("finished_at"),
        count=Count("pk"),
    )


def _activity() -> Subquery:
    return _one_of(
        Thread.objects.filter(resource=OuterRef("resource"), is_lab=False),
        "resource",
        active=Max("last_active_at"),
        count=Count("pk"),
    )


def _one_of(rows: QuerySet[Any], key: str, **parts: Any) -> Subquery:
    aliased = {f"of_{name}": part for name, part in parts.items()}
    stamp = JSONObject(**{name: f"of_{name}" for name in parts})
    return Subquery(
        rows.order_by().values(key).annotate(**aliased).annotate(stamp=stamp).values("stamp")
    )
