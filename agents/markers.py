"""Make the markers of the log: what each Observer, Reflector and activation did."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from agents import words
from agents.lines import LineShown, some
from agents.page import REFLECTS, Scene
from memory.models import Cycle, Line, Observation, Revision


@dataclass(frozen=True)
class Fact:
    """Show one number about a cycle."""

    name: str
    value: str


@dataclass(frozen=True)
class Link:
    """Show where more about something stands; in the drawer or on its own page."""

    words: str
    href: str
    drawer: bool = False


@dataclass(frozen=True)
class Marker:
    """Show one cycle or revision at the message where its range ends, or that was the last.

    ``first`` to ``last`` are the messages it is about, ``note`` is what else is worth knowing,
    ``quote`` what a person gave as the reason, ``again`` where what failed is asked for anew.
    """

    template: ClassVar = "marker"
    key: str
    position: int
    state: str
    words: str
    running: bool = False
    background: bool = False
    since: str = ""
    reason: str = ""
    facts: tuple[Fact, ...] = ()
    lines: tuple[LineShown, ...] = ()
    more: int = 0
    task: str = ""
    response: str = ""
    note: str = ""
    quote: str = ""
    first: int = 0
    last: int = 0
    opened: bool = False
    links: tuple[Link, ...] = ()
    again: str = ""


_DOING = {
    Cycle.Kind.BUFFER: ("buffering", "Buffering"),
    Cycle.Kind.OBSERVE: ("observing", "Observing"),
    Cycle.Kind.BUFFER_REFLECTION: ("reflecting", "Reflecting ahead"),
    Cycle.Kind.REFLECT: ("reflecting", "Reflecting"),
}
_DID = {
    Cycle.Kind.BUFFER: ("buffered", "Buffered"),
    Cycle.Kind.OBSERVE: ("observed", "✓ Observed"),
    Cycle.Kind.BUFFER_REFLECTION: ("buffered", "Reflected ahead"),
    Cycle.Kind.REFLECT: ("reflected", "✓ Reflected"),
}
_NOUNS = {
    Cycle.Kind.BUFFER: "Buffering",
    Cycle.Kind.OBSERVE: "Observation",
    Cycle.Kind.BUFFER_REFLECTION: "Reflection ahead",
    Cycle.Kind.REFLECT: "Reflection",
}
_TRIGGERS = {
    "threshold": "threshold reached",
    "interval": "buffer step reached",
    "ceiling": "ceiling reached",
    "fallback": "offline rules after repeated failures",
    "manual": "asked for by a person",
    "idle": "the conversation rested",
    "provider_change": "another model answers now",
    "overflow": "the request did not fit the model’s window",
    "scope": "carried over when the scope changed",
    "fork": "carried over by the fork",
}
_BRIEFLY = {
    "manual": "asked for",
    "idle": "after a rest",
    "provider_change": "another model",
    "overflow": "window full",
}
BACKGROUND = (Cycle.Kind.BUFFER, Cycle.Kind.BUFFER_REFLECTION)


def doing(kind: str) -> str:
    """Return what a running cycle of a kind is doing."""
    return _DOING[Cycle.Kind(kind)][1]


def state_and_words(cycle: Cycle, written: Observation | None) -> tuple[str, str]:
    """Return how a cycle stands: the state that styles it, and the words that say it."""
    kind = Cycle.Kind(cycle.kind)
    before = words.tokens(cycle.message_tokens)
    if cycle.status == Cycle.Status.RUNNING:
        state, text = _DOING[kind]
        return state, f"{text} {before} tokens"
    if cycle.status == Cycle.Status.DONE:
        state, text = _DID[kind]
        return state, " · ".join(_parts(text, cycle.message_tokens, written))
    if cycle.status == Cycle.Status.CANCELLED:
        return "interrupted", f"⚠ {_NOUNS[kind]} cancelled"
    if cycle.interrupted:
        return "interrupted", f"⚠ {_NOUNS[kind]} interrupted"
    if cycle.status == Cycle.Status.DISCARDED:
        return "interrupted", f"⚠ {_NOUNS[kind]} given up"
    return "failed", f"✕ {_NOUNS[kind]} failed"


def _parts(text: str, before: int, written: Observation | None) -> Iterator[str]:
    after = written.tokens if written else 0
    if not after:
        yield f"{text} {words.tokens(before)}"
        yield "nothing to keep"
        return
    yield f"{text} {words.tokens(before)} → {words.tokens(after)}"
    smaller = words.ratio(before, after)
    if smaller:
        yield smaller


def triggered(trigger: str) -> str:
    """Return why something was done, for people."""
    return _TRIGGERS.get(trigger, trigger or "–")


def happened_in(scene: Scene) -> list[tuple[datetime, Marker]]:
    """Return the markers of cycles, activations and reflections, each with its time."""
    cycles, activations = _of_cycles(scene), _of_activations(scene)
    happened = [(cycle.started_at, cycles[cycle.pk]) for cycle in scene.cycles]
    for revision in scene.revisions:
        if revision.number in activations:
            happened.append((revision.created_at, activations[revision.number]))
        elif revision.cause == Revision.Cause.REFLECT and revision.cycle_id:
            happened.append((revision.created_at, _condensed(scene, revision)))
    return happened


_Key = tuple[Hashable, ...]


def _key(scene: Scene, cycle: Cycle) -> _Key:
    written = scene.written_by.get(cycle.pk)
    return cycle.pk, cycle.status, cycle.finished_at, written and written.tokens


def _of_cycles(scene: Scene) -> dict[UUID, Marker]:
    """Return the markers of cycles; one that has ended stays as it is."""
    cycles = {_key(scene, cycle): cycle for cycle in scene.cycles}
    lasting = [key for key, cycle in cycles.items() if _lasts(scene, cycle)]

    def read(keys: Collection[_Key]) -> dict[_Key, Marker]:
        written = (scene.written_by.get(cycles[key].pk) for key in keys)
        lines = _lines_of(each for each in written if each is not None)
        return {key: _cycle(scene, cycles[key], lines) for key in keys}

    markers = scene.lasting("cycle", lasting, read) | read(cycles.keys() - set(lasting))
    return {cycles[key].pk: marker for key, marker in markers.items()}


def _lasts(scene: Scene, cycle: Cycle) -> bool:
    """Tell whether a cycle has ended, what it wrote was read, and it is known where it belongs."""
    written = scene.written_by.get(cycle.pk)
    is_whole = written is not None or cycle.status != Cycle.Status.DONE
    return cycle.finished_at is not None and is_whole and _range_end(cycle, written) is not None


def _of_activations(scene: Scene) -> dict[int, Marker]:
    """Return the markers of the activations that showed something of this thread, by revision."""
    shown: dict[_Key, tuple[Revision, list[Observation]]] = {
        (revision.number, *((each.pk, each.tokens) for each in found)): (revision, found)
        for revision in scene.revisions
        if revision.cause == Revision.Cause.ACTIVATE
        and (found := scene.shown_at.get(revision.number))
    }

    def read(keys: Collection[_Key]) -> dict[_Key, Marker]:
        lines = _lines_of(each for key in keys for each in shown[key][1])
        return {key: _activation(scene, *shown[key], lines) for key in keys}

    markers = scene.lasting("activation", shown, read)
    return {shown[key][0].number: marker for key, marker in markers.items()}


_Lines = Mapping[UUID, Sequence[Line]]


def _lines_of(observations: Iterable[Observation]) -> _Lines:
    """Return the lines of observations as they were first written, by the observation."""
    found: dict[UUID, list[Line]] = {each.pk: [] for each in observations}
    if not found:
        return found
    first = Line.objects.filter(observation__in=found, replaces=None)
    for line in first.order_by("ordinal", "id"):
        found[line.observation_id].append(line)
    return found


def _cycle(scene: Scene, cycle: Cycle, of: _Lines) -> Marker:
    written = scene.written_by.get(cycle.pk)
    state, text = state_and_words(cycle, written)
    lines, more = some(of[written.pk] if written else (), scene.zone)
    return Marker(
        key=f"cycle-{cycle.pk}",
        position=_position(scene, cycle, written),
        state=state,
        words=text,
        running=cycle.status == Cycle.Status.RUNNING,
        background=cycle.kind in BACKGROUND,
        since=cycle.started_at.isoformat(timespec="seconds"),
        reason=cycle.error,
        facts=tuple(facts(cycle, written)),
        lines=lines,
        more=more,
        task=written.current_task if written else "",
        response=written.suggested_response if written else "",
        note=cycle.note,
        first=cycle.first_position or 0,
        last=cycle.last_position or 0,
        opened=state == "failed" and cycle.kind == Cycle.Kind.OBSERVE,
        links=tuple(_links(scene, cycle)),
        again=_again(scene, cycle),
    )


def _links(scene: Scene, cycle: Cycle) -> Iterator[Link]:
    """Yield where the messages a cycle read stand, and what was asked and answered in it."""
    if cycle.first_position and cycle.last_position:
        yield messages_link(scene, cycle.first_position, cycle.last_position, "read")
    if cycle.status != Cycle.Status.RUNNING:
        who = "Reflector" if cycle.kind in REFLECTS else "Observer"
        yield Link(f"{who} call", f"/context/calls/{cycle.pk}/")


def messages_link(scene: Scene, first: int, last: int, did: str) -> Link:
    """Return a link to the first message of a range; positions have gaps, so none is counted."""
    span = f"message {first}" if first == last else f"messages {first}–{last}"
    return Link(f"{span} {did}", f"/chat/{scene.thread_id}/?from={first}#message-{first}")


def revision_link(scene: Scene, number: int) -> Link:
    """Return a link to memory as a revision left it."""
    return Link(f"Revision {number}", f"/memory/{scene.thread_id}/?rev={number}")


def _again(scene: Scene, cycle: Cycle) -> str:
    """Return where a cycle that went wrong is asked for anew."""
    if cycle.status not in Cycle.FRUITLESS:
        return ""
    operation = "reflect" if cycle.kind in REFLECTS else "observe"
    return f"/chat/{scene.thread_id}/operate/{operation}"


def _position(scene: Scene, cycle: Cycle, written: Observation | None) -> int:
    end = _range_end(cycle, written)
    return position_at(scene, cycle.started_at) if end is None else end


def _range_end(cycle: Cycle, written: Observation | None) -> int | None:
    """Return the last message a cycle was about, as far as it says so."""
    if cycle.last_position is not None:
        return cycle.last_position
    through: int | None = getattr(written, "sources_through", None)
    return through


def position_at(scene: Scene, at: datetime) -> int:
    """Return the position of the last message that was there at a time; 0 when none shown was."""
    return max((m.position for m in scene.messages if m.created_at <= at), default=0)


def facts(cycle: Cycle, written: Observation | None) -> Iterator[Fact]:
    """Return the numbers of a cycle that are known."""
    yield Fact("Input", f"{words.tokens(cycle.message_tokens)} tokens")
    if written is not None:
        yield Fact("Output", f"{words.tokens(written.tokens)} tokens")
        yield Fact("Ratio", words.ratio(cycle.message_tokens, written.tokens) or "–")
    if cycle.finished_at is not None:
        yield Fact("Duration", words.lasted(cycle.finished_at - cycle.started_at))
    if cycle.model:
        yield Fact("Model", cycle.model)
    if cycle.input_tokens or cycle.output_tokens:
        used = f"{words.tokens(cycle.input_tokens)} in, {words.tokens(cycle.output_tokens)} out"
        yield Fact("Model tokens", used)
    if cycle.cost is not None:
        yield Fact("Cost", f"${cycle.cost:.4f}")
    if cycle.trigger:
        yield Fact("Trigger", triggered(cycle.trigger))
    if cycle.attempt > 1:
        yield Fact("Attempt", str(cycle.attempt))
    if cycle.first_position is not None:
        yield Fact("Messages", f"{cycle.first_position}–{cycle.last_position}")


def _activation(scene: Scene, revision: Revision, shown: list[Observation], of: _Lines) -> Marker:
    before, after = revision.message_tokens_before, revision.message_tokens_after
    count = len(shown)
    lines, more = some([line for each in shown for line in of[each.pk]], scene.zone)
    chunks = f"{count} chunk" if count == 1 else f"{count} chunks"
    why = _BRIEFLY.get(revision.trigger, revision.trigger)
    trigger = f" · {why}" if why else ""
    covered = sum(each.message_tokens for each in shown)
    written = sum(each.tokens for each in shown)
    first = min(each.first_position or 0 for each in shown)
    last = max(each.last_position or 0 for each in shown)
    return Marker(
        key=f"revision-{revision.number}",
        position=last,
        state="activated",
        words=f"✓ Activated {chunks} · {words.tokens(before)} → {words.tokens(after)}{trigger}",
        reason="The messages above left the context; these lines stand for them now.",
        facts=(
            Fact("Messages before", f"{words.tokens(before)} tokens"),
            Fact("Messages after", f"{words.tokens(after)} tokens"),
            Fact("Became", f"{words.tokens(covered)} → {words.tokens(written)}"),
            Fact("Ratio", words.ratio(covered, written) or "–"),
            Fact("Trigger", triggered(revision.trigger)),
            Fact("Revision", str(revision.number)),
        ),
        lines=lines,
        more=more,
        first=first,
        last=last,
        links=(messages_link(scene, first, last, "left"), revision_link(scene, revision.number)),
    )


def _condensed(scene: Scene, revision: Revision) -> Marker:
    before, after = revision.tokens_before, revision.tokens_after
    written = scene.written_by.get(revision.cycle_id) if revision.cycle_id else None
    through = getattr(written, "sources_through", None)
    elsewhere = position_at(scene, revision.created_at)
    return Marker(
        key=f"revision-{revision.number}",
        position=int(through) if through is not None else elsewhere,
        state="reflected",
        words=f"✓ Condensed {words.tokens(before)} → {words.tokens(after)}",
        reason="A reflection took the place of these observations.",
        facts=(
            Fact("Observations before", f"{words.tokens(before)} tokens"),
            Fact("Observations after", f"{words.tokens(after)} tokens"),
            Fact("Ratio", words.ratio(before, after) or "–"),
            Fact("Trigger", triggered(revision.trigger)),
            Fact("Revision", str(revision.number)),
        ),
        links=(revision_link(scene, revision.number),),
    )
