"""Keep open pages equal to the rows: named regions, when each is stale, rendered once for all.

Theory of operation
-------------------
A page consists of regions. Each is rendered from rows alone and carries a digest of its own
HTML, its *etag*. An event marks the regions it can change; after a moment they are rendered in
one database hop, once per thread and process, and whoever shows another etag is sent them
whole, or of a log what changed since the version it shows (`agents/patches.py`). Nothing depends
on an event: a lost one is found by the watch, which compares a small *stamp* of every open thread
with the one each region was rendered at; a doubled one changes nothing; a lost frame is found by
the page, which tells its etags now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2s
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest
from django.template.loader import get_template

from agents import gauges, markers, panel, words
from agents.extent import Listed, threads_of
from agents.log import log_of, reply_words
from agents.models import Turn
from agents.page import Scene
from agents.pieces import entry_bytes
from agents.stamps import Stamp
from memory.models import Message, Thread
from memory.tiers import offline_mode

#: Which parts of a stamp a region depends on.
STAMPED: dict[str, tuple[str, ...]] = {
    "threads": ("activity", "turn", "cycle", "title", "revision"),
    "title": ("title", "position", "revision"),
    "entries": ("position", "turn", "revision", "cycle", "forks"),
    "draft": ("turn", "position", "draft"),
    "queue": ("turn",),
    "turnbar": ("turn", "cycle", "revision"),
    "gauges": ("position", "revision", "cycle", "beside"),
    "operations": ("cycle", "revision"),
    "chunks": ("revision", "cycle"),
    "others": ("revision", "beside"),
    "task": ("revision",),
    "observations": ("revision",),
    "generations": ("revision",),
}
NAMES = tuple(STAMPED)

_CHANGED = ("entries", "gauges", "observations")
_ALL = NAMES
#: What other conversations of a resource change on a page: it comes without an event.
BESIDE = frozenset(("threads", "gauges", "others"))

#: Which regions an event of a kind can change.
REGIONS: dict[str, tuple[str, ...]] = {
    "messages.appended": ("title", "entries", "draft", "gauges", "threads", "others"),
    "cycle.started": ("entries", "turnbar", "gauges", "operations", "threads"),
    "cycle.finished": ("entries", "turnbar", "gauges", "operations", "chunks", "threads"),
    "cycle.failed": ("entries", "turnbar", "gauges", "operations", "threads"),
    # Titles are given as observations are shown, and name what other conversations said.
    "memory.activated": (*_CHANGED, "chunks", "others", "task", "operations", "threads"),
    "memory.reflected": (*_CHANGED, "generations"),
    "memory.edited": _CHANGED,
    "memory.noted": _CHANGED,
    "memory.pinned": _CHANGED,
    "memory.forgotten": _CHANGED,
    "memory.restored": _CHANGED,
    "memory.cleared": (*_CHANGED, "chunks", "operations", "task"),
    "memory.erased": _ALL,
    "memory.configured": (*_CHANGED, "others", "title"),
    "scope.changed": _ALL,
    "thread.renamed": ("title", "threads"),
    "thread.forked": (*_CHANGED, "others", "threads"),
    "turn.queued": ("queue", "turnbar", "threads"),
    "turn.withdrawn": ("queue", "turnbar"),
    "turn.started": ("queue", "turnbar", "threads"),
    "turn.delta": ("draft",),
    "turn.closed": ("entries", "draft", "turnbar", "threads"),
}

#: Stands where a region has its pieces; the database takes no such character in any text.
HOLE = "\0"

#: What differs from one render to the next and is no news: clocks, and masked tokens of forms.
_CLOCK = re.compile(rb"(<time [^>]*data-(?:elapsed|ago)[^>]*>)[^<]*")
_TOKEN = re.compile(rb"(name=\"csrfmiddlewaretoken\" value=)\"[^\"]*\"")


@dataclass(frozen=True)
class Patch:
    """Hold what makes a region of its version before, and what its element says of it then."""

    base: str
    html: str
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Rendered:
    """Hold the HTML of one region and the digest by which pages tell whether theirs is this.

    It is kept in parts, as UTF-8: those of a log are shared by all of its versions, and one
    arrow would make a text twice as large.
    """

    name: str
    etag: str
    parts: tuple[bytes, ...]
    #: The ids of the parts between the first and the last, where there are such.
    keys: tuple[str, ...] = ()
    patch: Patch | None = field(default=None, compare=False, repr=False)

    @property
    def html(self) -> str:
        """Return the region whole."""
        return b"".join(self.parts).decode()

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
    heard: Delta | None = None,
    stamp: Stamp | None = None,
) -> dict[str, Rendered]:
    """Return regions of a thread, rendered from rows. Raises Thread.DoesNotExist.

    ``heard`` is newer than the stored draft. With a ``stamp`` that was read before, what cannot
    have changed is not read again.
    """
    scene = Scene(thread_id, now, stamp=stamp)
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
    return rendered(f"chat/regions.html#{name}", name, context)


def rendered(
    template: str, name: str, context: Mapping[str, Any], request: HttpRequest | None = None
) -> Rendered:
    """Return a region rendered from a template, with its digest.

    Where the template says so it has the pieces that the context holds by their ids, each rendered
    before.
    """
    known = {"etag": "", "hole": HOLE, **context}
    html = get_template(template).render(known, request).strip()
    before, _, after = html.encode().partition(HOLE.encode())
    pieces: Mapping[str, bytes] = context.get("pieces", {})
    digest = blake2s(digest_size=6)
    for part in (before, *pieces.values(), after):
        digest.update(_lasting(part))
    etag = digest.hexdigest()
    head = before.replace(b'data-etag=""', f'data-etag="{etag}"'.encode(), 1)
    return Rendered(name, etag, (head, *pieces.values(), after), tuple(pieces))


def _lasting(html: bytes) -> bytes:
    """Return what is news in HTML; most regions have no clock, and looking for one takes long."""
    if b"data-elapsed" in html or b"data-ago" in html:
        html = _CLOCK.sub(rb"\1", html)
    return _TOKEN.sub(rb"\1", html) if b"csrfmiddlewaretoken" in html else html


def draft_of(scene: Scene, heard: Delta | None = None) -> dict[str, Any]:
    """Return what the running turn has said beyond its stored messages."""
    turn = scene.running_turn
    if turn is None or not (turn.draft_text or (heard and heard.turn == turn.number)):
        return {"draft": ""}
    said = Message.objects.above(scene.thread_id, turn.first_position or 0)
    last, stored = said.order_by("-position").values_list("position", "text").first() or (0, "")
    if heard is not None and heard.turn == turn.number and heard.after >= last:
        return {"draft": heard.text}
    # The stored draft lags behind: what has become a message must not be shown twice.
    return {"draft": "" if turn.draft_text.strip() in stored else turn.draft_text}


def _threads(scene: Scene) -> dict[str, Any]:
    return {"rows": thread_rows(scene.siblings, scene.now, current=scene.thread_id)}


def beside(
    resource_id: int,
    wanted: Mapping[UUID, Collection[str]],
    stamps: Mapping[UUID, Stamp],
    now: datetime,
) -> dict[UUID, list[Rendered]]:
    """Return regions of several threads of a resource, whose list is read once for all.

    A thread that is gone is left out.
    """
    siblings = threads_of(resource_id)
    found = {}
    for thread_id, names in wanted.items():
        scene = Scene(thread_id, now, stamp=stamps[thread_id], siblings=siblings)
        with suppress(Thread.DoesNotExist):
            found[thread_id] = [_rendered(name, CONTEXTS[name](scene)) for name in names]
    return found


@dataclass(frozen=True)
class ThreadRow:
    """Show one thread of a list."""

    template: ClassVar = "thread-row"
    id: UUID
    title: str
    current: bool
    doing: str
    active_at: str
    active_words: str


def thread_rows(
    threads: Iterable[Listed], now: datetime, current: UUID | None = None
) -> list[ThreadRow]:
    """Return the rows of a list of threads."""
    return [
        ThreadRow(
            id=thread.pk,
            title=thread.title,
            current=thread.pk == current,
            doing=_doing(thread),
            active_at=thread.last_active_at.isoformat(timespec="seconds"),
            active_words=words.ago(now, thread.last_active_at),
        )
        for thread in threads
    ]


def _doing(thread: Listed) -> str:
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
        "offline": offline_mode(model) is not None,
        "messages": scene.extent.messages,
        "thread": scene.thread_id,
        "resource": scene.thread.resource.key,
        "temporary": scene.is_temporary,
        "off": not scene.remembers,
        "archived": scene.thread.archived_at is not None,
    }
    return {"title": title}


def _entries(scene: Scene) -> dict[str, Any]:
    log = log_of(scene, hint="" if scene.messages else panel.first_hint(scene))
    return {"log": log, "pieces": {entry.key: entry_bytes(entry) for entry in log.entries}}


def _queue(scene: Scene) -> dict[str, Any]:
    waiting = [
        {
            "thread": scene.thread_id,
            "number": turn.number,
            "prompt": words.first_words(turn.prompt, 200),
            "attachments": turn.attachments,
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
        bar["blocked"] = panel.blocked(scene)
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
    "gauges": lambda scene: {"panel": gauges.panel_of(scene)},
    "operations": lambda scene: {"work": panel.work_of(scene)},
    "chunks": lambda scene: {"chunks": panel.chunks_of(scene)},
    "others": lambda scene: {"others": panel.others_of(scene)},
    "task": lambda scene: {"hints": dict(zip(("task", "response"), scene.hints, strict=True))},
    "observations": lambda scene: {"seen": panel.seen_of(scene)},
    "generations": lambda scene: {"generations": panel.generations_of(scene)},
}


def stale(rendered_at: Mapping[str, Stamp | None], now: Stamp) -> set[str]:
    """Return the regions whose part of the stamp is not what they were rendered at."""
    return {
        name
        for name, parts in STAMPED.items()
        if (then := rendered_at.get(name)) is None or any(then[p] != now[p] for p in parts)
    }
