"""Make the markers of what people did to memory: edits, notes, pins, forks and the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from agents import words
from agents.lines import some
from agents.markers import Fact, Marker, happened_in, position_at, revision_link
from agents.page import Scene
from memory.models import Revision, Thread
from memory.services.versions import came_back_to, undone

Cause = Revision.Cause

#: What a person did by a revision of each cause.
DID = {
    Cause.EDIT: "✎ Line edited",
    Cause.NOTE: "✎ Note written",
    Cause.PIN: "⚲ Pins changed",
    Cause.FORGET: "− Lines forgotten",
    Cause.RESTORE: "↺ Lines restored",
    Cause.CLEAR: "− Memory cleared",
    Cause.ERASE: "⊘ Erased",
    Cause.CONFIG: "⚙ Options changed",
    Cause.SCOPE: "⇄ Scope changed",
    Cause.IMPORT: "↓ Imported",
}
_MEANS = {
    Cause.FORGET: "These lines are out of sight. They stay in history and can be shown again.",
    Cause.CLEAR: "All lines went out of sight. They stay in history and can be restored.",
    Cause.ERASE: "Text was destroyed, and everything made of it. It cannot be brought back.",
    Cause.CONFIG: "They hold from the next step on.",
}


@dataclass(frozen=True)
class Forked:
    """Show where a conversation was forked; ``link`` leads to the other by its ``title``."""

    template: ClassVar = "forked"
    key: str
    position: int
    words: str
    link: str = ""
    title: str = ""
    after: str = ""
    quote: str = ""


def markers_of(scene: Scene) -> list[Marker | Forked]:
    """Return the markers of a scene in the order in which they happened, forks first."""
    happened = sorted([*happened_in(scene), *_changes(scene)], key=lambda pair: pair[0])
    return [*forks_of(scene), *(marker for _, marker in happened)]


def _changes(scene: Scene) -> Iterator[tuple[datetime, Marker]]:
    """Yield the markers of the revisions that people made, each with its time."""
    for revision in scene.revisions:
        if revision.cause in DID:
            yield revision.created_at, _marker(scene, revision)


def _marker(scene: Scene, revision: Revision) -> Marker:
    cause = Cause(revision.cause)
    lines, more = some(scene.changed.get(revision.number, ()), scene.zone)
    return Marker(
        key=f"revision-{revision.number}",
        position=position_at(scene, revision.created_at),
        state="changed",
        words=_words(scene, revision),
        reason=_MEANS.get(cause, ""),
        quote=revision.reason,
        facts=tuple(_facts(revision)),
        lines=lines,
        more=more,
        links=(revision_link(scene, revision.number),),
    )


def _words(scene: Scene, revision: Revision) -> str:
    cause = Cause(revision.cause)
    did = DID[cause]
    if cause == Cause.PIN:
        for line in scene.changed.get(revision.number, ())[:1]:
            did = "⚲ Pinned" if line.pinned else "⚲ Unpinned"
    elif cause == Cause.SCOPE:
        did = f"{did} to {'all conversations' if scene.is_shared else 'this conversation'}"
    elif (number := undone(revision)) is not None:
        did = f"↺ Undid revision {number}"
    elif (number := came_back_to(revision)) is not None:
        did = f"↺ Back to revision {number}"
    return f"{did} by {revision.author}" if revision.author else did


def _facts(revision: Revision) -> Iterator[Fact]:
    if revision.tokens_before != revision.tokens_after:
        yield Fact("Observations before", f"{words.tokens(revision.tokens_before)} tokens")
        yield Fact("Observations after", f"{words.tokens(revision.tokens_after)} tokens")
    yield Fact("Revision", str(revision.number))


def forks_of(scene: Scene) -> Iterator[Forked]:
    """Yield where the thread was forked from another, and where others were from it."""
    thread = scene.thread
    if thread.fork_position is not None:
        yield _from(scene, scene.relatives.get(thread.parent_id) if thread.parent_id else None)
    for fork in scene.relatives.values():
        if fork.parent_id == thread.pk:
            yield _fork(scene, fork, "→ Forked to", fork.fork_position or 0, fork)


def _from(scene: Scene, parent: Thread | None) -> Forked:
    text = "← Forked from" if parent else "← Forked from a conversation that is gone"
    return _fork(scene, scene.thread, text, scene.thread.fork_position or 0, parent)


def _fork(scene: Scene, child: Thread, text: str, position: int, other: Thread | None) -> Forked:
    made = (r for r in scene.revisions if r.cause == Cause.FORK and r.thread_id == child.pk)
    # A record of the child's own says so of itself alone.
    revision = next(made, None)
    by = f" by {revision.author}" if revision is not None and revision.author else ""
    return Forked(
        key=f"fork-{child.pk}",
        position=position,
        words=text + ("" if other else by),
        link=f"/chat/{other.pk}/" if other else "",
        title=f"{other}" if other else "",
        after=by if other else "",
        quote=revision.reason if revision is not None else "",
    )
