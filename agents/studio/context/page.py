"""Put together what the context pages show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from agents import words
from agents.models import RequestSnapshot
from agents.requested import WITHOUT_MEMORY
from agents.secrets import masked_text
from agents.studio.context.ahead import NEXT, Ahead
from agents.studio.context.asked import DROPPABLE, OPTIONS
from agents.studio.context.beside import fix, not_sent, notices, reasons
from agents.studio.context.differ import (
    NAMES,
    Change,
    Line,
    Prefix,
    change,
    folded,
    lines,
    prefix,
)
from agents.studio.context.inspected import ORDER, Inspected
from agents.studio.context.rows import bar_of, rows_of, share
from agents.studio.context.sent import (
    MOST_LISTED,
    Sent,
    inspected_of,
    key_of,
    name_of,
    requests_of,
    url_of,
)
from memory.models import Thread
from memory.services.request import LEFT_OUT

MOST_CHANGED = 60

KEYS = (
    ("j, k", "next, previous block"),
    ("Enter", "unfold, fold a block"),
    ("a", "unfold, fold all"),
    ("[, ]", "older, newer request"),
    ("d", "compare with another request"),
    ("w", "where is …?"),
)


@dataclass(frozen=True)
class Stop:
    """Show one request in the strip of requests."""

    key: str
    name: str
    href: str
    current: bool = False
    clock: str = ""
    look: str = ""


def strip_of(
    thread: Thread, latest: Sequence[RequestSnapshot], current: str, zone: ZoneInfo
) -> list[Stop]:
    """Return the next request and the latest that were sent, the newest first."""
    ahead = Stop(NEXT, "next", f"/context/{thread.pk}/", current == NEXT)
    return [ahead, *(_stop(each, current, zone) for each in latest)]


def _stop(snapshot: RequestSnapshot, current: str, zone: ZoneInfo) -> Stop:
    key = key_of(snapshot)
    clock = f"{snapshot.created_at.astimezone(zone):%-d %b %H:%M}"
    status = str(snapshot.turn.status)
    return Stop(key, name_of(snapshot), url_of(snapshot), key == current, clock, status)


def latest_of(thread: Thread, around: RequestSnapshot | None = None) -> list[RequestSnapshot]:
    """Return the latest requests, or those up to a little after one."""
    rows = requests_of(thread.pk).defer("blocks")
    if around is not None:
        rows = rows.filter(turn__number__lte=around.turn.number + MOST_LISTED // 3)
    return list(rows[:MOST_LISTED])


def zone_of(thread: Thread) -> ZoneInfo:
    """Return the time zone the thread's people live in."""
    return ZoneInfo(thread.resource.time_zone)


def ahead_context(
    thread: Thread,
    ahead: Ahead,
    *,
    opened: Sequence[str],
    plain: Ahead | None = None,
    place: Thread | None = None,
) -> dict[str, Any]:
    """Return what the page of the next request shows; ``plain`` is it without suppositions.

    ``place`` is the conversation it would be sent in, where that is another one.
    """
    place = place or thread
    latest = latest_of(thread)
    # What another conversation is sent has nothing in common with what this one was.
    base = _base(latest) if place == thread else None
    inspected, zone = ahead.inspected, zone_of(place)
    shared = prefix(base, inspected) if base is not None else None
    rows = rows_of(
        inspected,
        zone,
        before=base,
        stored=ahead.stored,
        reasons=reasons(ahead),
        opened=opened,
    )
    return {
        "title": "Next request",
        "place": place,
        "at": ahead.now,
        "clock": f"{ahead.now.astimezone(zone):%H:%M:%S}",
        "model": ahead.profile.model_name if ahead.profile else "",
        "profile": ahead.profile,
        "revision": ahead.state.record.revision if ahead.state.record else 0,
        "request_shown": inspected,
        "numbers": _numbers(inspected),
        "rows": rows,
        "bar": bar_of(inspected, rows, shared),
        "prefix": _told(shared, latest[0]) if shared is not None else None,
        "notices": list(notices(ahead)),
        "not_sent": not_sent(ahead),
        "strip": strip_of(thread, latest, NEXT, zone),
        "older": url_of(latest[0]) if latest else "",
        "window_share": _of_window(inspected),
        "simulated": _simulated(ahead, plain, place if place != thread else None),
        "asked": ahead.asked,
        "fields": [
            {"name": name, "label": label, "hint": hint, "value": ahead.asked.typed.get(name, "")}
            for name, (_, label, hint) in OPTIONS.items()
        ],
        "unaccounted": inspected.total - inspected.accounted,
        "drops": [
            {"name": f"without_{kind}", "label": label, "on": kind in ahead.asked.drop}
            for kind, label in DROPPABLE.items()
        ],
        "keys": KEYS,
        "of_query": "next",
    }


def _base(latest: Sequence[RequestSnapshot]) -> Inspected | None:
    if not latest:
        return None
    return inspected_of(latest[0])


def _simulated(ahead: Ahead, plain: Ahead | None, place: Thread | None) -> str:
    if plain is None:
        return ""
    more = ahead.total - plain.total
    change = f"{more:+,}".replace("-", "−") if more else "no"
    there = f"Sent in “{place}” of {place.resource} instead: " if place is not None else ""
    return f"{there}{change} tokens against the request as things are ({plain.total:,})"


def _numbers(inspected: Inspected) -> dict[str, str]:
    window = inspected.window
    return {"total": f"{inspected.total:,}", "window": f"{window:,}" if window else ""}


def _of_window(inspected: Inspected) -> str:
    if inspected.window is None:
        return ""
    part = 100 * inspected.total / inspected.window
    return f"{part:.1f} %"


@dataclass(frozen=True)
class Told:
    """Show how much of a request is as in another one."""

    since: str
    href: str
    tokens: str
    share: str
    broken_at: str


def _told(found: Prefix, base: RequestSnapshot) -> Told:
    return Told(
        since=name_of(base),
        href=url_of(base),
        tokens=f"{found.tokens:,}",
        share=share(found.tokens, found.total),
        broken_at=found.broken_at,
    )


def sent_context(thread: Thread, sent: Sent, *, opened: Sequence[str]) -> dict[str, Any]:
    """Return what the page of a request that was sent shows."""
    zone, inspected, snapshot = zone_of(thread), sent.inspected, sent.snapshot
    before = inspected_of(sent.before) if sent.before is not None else None
    shared = prefix(before, inspected) if before is not None else None
    rows = rows_of(inspected, zone, before=before, opened=opened)
    reported = sent.reported
    return {
        "title": f"Request {name_of(snapshot)}",
        "place": thread,
        "sent": sent,
        "snapshot": snapshot,
        "revision": snapshot.revision,
        "request_shown": inspected,
        "numbers": _numbers(inspected),
        "clock": f"{snapshot.created_at.astimezone(zone):%-d %b %Y %H:%M:%S}",
        "model": reported.model if reported else "",
        "rows": rows,
        "bar": bar_of(inspected, rows, shared),
        "prefix": _told(shared, sent.before) if shared and sent.before else None,
        "reported": reported,
        "drift": _drift(inspected.total, reported.input_tokens) if reported else "",
        "verdicts": [verdict for verdict in (sent.trust(), sent.foreseen()) if verdict],
        "strip": strip_of(thread, latest_of(thread, snapshot), inspected.key, zone),
        "steps": sent.steps,
        "older": url_of(sent.before) if sent.before else "",
        "newer": url_of(sent.after) if sent.after else f"/context/{thread.pk}/",
        "unaccounted": inspected.total - inspected.accounted,
        "dropped": inspected.of(LEFT_OUT),
        "bare": next(filter(None, (_bare(part.source) for part in inspected.parts)), ""),
        "keys": KEYS,
        "of_query": inspected.key,
    }


def _bare(source: str) -> str:
    """Return why a part was sent without memory; empty where it was not."""
    return source.partition(WITHOUT_MEMORY)[2]


def _drift(estimate: int, reported: int) -> str:
    part = 100 * (reported - estimate) / reported if reported else 0.0
    return f"{part:+.1f} %".replace("-", "−")


@dataclass(frozen=True)
class Compared:
    """Show how one block differs between two requests."""

    key: str
    name: str
    old: int
    new: int
    change: Change
    lines: tuple[Line, ...] = ()
    gone: bool = False


def compared(old: Inspected, new: Inspected) -> list[Compared]:
    """Return all blocks of two requests, with the lines and messages that differ."""
    return [_compared(kind, old, new) for kind in ORDER if old.of(kind) or new.of(kind)]


def _compared(kind: str, old: Inspected, new: Inspected) -> Compared:
    before, after = old.of(kind), new.of(kind)
    sizes = [sum(part.tokens for part in parts) for parts in (before, after)]
    found = change(kind, old, new)
    one = Compared(kind, NAMES[kind], sizes[0], sizes[1], found)
    if found.look == "same":
        return one
    if any(part.of_messages for part in (*before, *after)):
        return replace(one, lines=tuple(_messages(before, after)))
    texts = [parts[0].text if parts else "" for parts in (before, after)]
    if texts[0] is None or texts[1] is None:
        return replace(one, gone=True)
    shown = (masked_text(text or "") for text in texts)
    return replace(one, lines=tuple(folded(list(lines(*shown)))))


def _messages(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Line]:
    was, now = ({s.position: s for part in parts for s in part.said} for parts in (before, after))
    moved = sorted(was.keys() ^ now.keys())
    for position in moved[:MOST_CHANGED]:
        said = now.get(position) or was[position]
        text = f"message {position}: {words.first_words(masked_text(said.text), 120)}"
        yield Line("+" if position in now else "-", text)
    if len(moved) > MOST_CHANGED:
        yield Line("…", f"{len(moved) - MOST_CHANGED} more messages")


def next_json(ahead: Ahead) -> dict[str, Any]:
    """Return the next request in numbers, as the composer of the chat shows it."""
    found: dict[str, int] = {}
    for block in ahead.blocks:
        if block["kind"] != LEFT_OUT:
            found[block["kind"]] = found.get(block["kind"], 0) + block["tokens"]
    total = ahead.total
    dropped = sum(b["tokens"] for b in ahead.blocks if b["kind"] == LEFT_OUT)
    return {
        "total": total,
        "window": ahead.window,
        "fits": not fix(ahead),
        "fix": fix(ahead),
        "left_out": dropped,
        "waits": ahead.foreseen.prepared.wait_seconds,
        "hash": ahead.hash,
        "blocks": [
            {
                "kind": kind,
                "name": NAMES[kind],
                "tokens": found[kind],
                "share": round(found[kind] / total, 4) if total else 0,
            }
            for kind in ORDER
            if kind in found
        ],
    }
