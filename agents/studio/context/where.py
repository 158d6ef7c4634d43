"""Answer where a text or a message is: in the next request, waiting, or out of sight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from agents import words
from agents.secrets import masked_text
from agents.studio.context.ahead import Ahead
from memory.models import Line, Message, Revision, Thread, holding
from memory.services import kept
from memory.services.request import LEFT_OUT

MOST = 5
MOST_ELSEWHERE = 3
SHORTEST = 2
_POSITION = re.compile(r"(?:message\s*)?#?(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    """Hold one place where something is: in words, with what stands there and a link to it."""

    place: str
    text: str = ""
    href: str = ""
    look: str = ""


class Search:
    """Look for a text in all that the next request is made of, and in what it leaves out."""

    def __init__(self, ahead: Ahead, text: str, threads: Any) -> None:
        self.ahead = ahead
        self.text = text.strip()
        self.threads = threads

    @cached_property
    def hits(self) -> list[Hit]:
        """Return the places, what is sent first; one that says nowhere when there is none."""
        if len(self.text) < SHORTEST and not _POSITION.fullmatch(self.text):
            return [Hit("Write at least two letters, or the number of a message.")]
        found = [self._masked(hit) for hit in [*self._by_position()] or [*self._by_text()]]
        return found or [Hit("Nowhere: not in this conversation, nor in what it remembers.")]

    def _by_position(self) -> Iterator[Hit]:
        match = _POSITION.fullmatch(self.text)
        if match is None:
            return
        rows = Message.objects.filter(thread=self.ahead.thread_id, position=int(match[1]))
        for position, text, at in rows.values_list("position", "text", "created_at"):
            yield self._of_message(position, text, at)
            for number, line in enumerate(self._lines, 1):
                if self._rests_on(line, position):
                    yield self._of_line(number, line)

    def _rests_on(self, line: Line, position: int) -> bool:
        own = line.of_thread in (None, self.ahead.thread_id)  # type: ignore[attr-defined]
        return own and (line.first_position or 0) <= position <= (line.last_position or 0)

    def _by_text(self) -> Iterator[Hit]:
        yield from self._in_told()
        visible = enumerate(self._lines, 1)
        found = [(number, line) for number, line in visible if self._holds(line.text)]
        yield from (self._of_line(number, line) for number, line in found[:MOST])
        yield from self._in_hints()
        yield from self._in_messages()
        yield from self._in_chunks()
        yield from self._in_past_lines({line.text for _, line in found})
        yield from self._elsewhere()

    def _holds(self, text: str) -> bool:
        return self.text.casefold() in text.casefold()

    @property
    def _lines(self) -> list[Line]:
        return list(self.ahead.view.lines) if self.ahead.view is not None else []

    def _in_told(self) -> Iterator[Hit]:
        for each in self.ahead.told:
            if self._holds(each.text):
                yield Hit(f"In the agent’s {each.kind}", self._around(each.text), look="sent")

    def _of_line(self, number: int, line: Line) -> Hit:
        view = self.ahead.view
        revision = view.revision if view is not None else 0
        return Hit(
            f"In observation row {number}",
            line.text,
            f"/memory/{self.ahead.thread_id}/?rev={revision}#line-{line.pk}",
            "sent",
        )

    def _in_hints(self) -> Iterator[Hit]:
        view = self.ahead.view
        if view is None:
            return
        for name, text in (
            ("current task", view.hints.current_task),
            ("suggested response", view.hints.suggested_response),
        ):
            if self._holds(text):
                yield Hit(f"In the {name} of the reminder", text, look="sent")

    def _in_messages(self) -> Iterator[Hit]:
        rows = Message.objects.filter(holding("text", self.text), thread=self.ahead.thread_id)
        newest = rows.order_by("-position").values_list("position", "text", "created_at")
        for position, text, at in newest[:MOST]:
            yield self._of_message(position, text, at)

    def _of_message(self, position: int, text: str, at: Any) -> Hit:
        zone = ZoneInfo(self.ahead.state.thread.resource.time_zone)
        clock = f"{at.astimezone(zone):%-d %b %H:%M}"
        href = f"/chat/{self.ahead.thread_id}/?from={position}#message-{position}"
        place, look = self._place(position)
        return Hit(f"{place} {position} of {clock}", self._around(text), href, look)

    def _place(self, position: int) -> tuple[str, str]:
        inspected = self.ahead.inspected
        if any(said.position == position for said in inspected.said):
            return "In unobserved message", "sent"
        if any(s.position == position for part in inspected.of(LEFT_OUT) for s in part.said):
            return "Left out for want of room: message", "out"
        if any(o.first_position <= position <= o.last_position for o in self._coming):
            return "In a chunk that is activated first, and no longer raw: message", "waiting"
        can = "recall can find it" if self._recalls else "no tool recalls it"
        return f"Only in a raw message, observed away ({can}):", "out"

    @property
    def _coming(self) -> list[Any]:
        own = self.ahead.thread_id
        return [chunk for chunk in self.ahead.foreseen.chunks if chunk.thread_id == own]

    @property
    def _recalls(self) -> bool:
        return any('"name": "recall"' in each.text for each in self.ahead.told)

    def _in_chunks(self) -> Iterator[Hit]:
        view = self.ahead.view
        if view is None:
            return
        chunks = [o for tail in view.tails for o in tail.buffered]
        number = {chunk.pk: place for place, chunk in enumerate(chunks, 1)}
        soon = {chunk.pk for chunk in self.ahead.foreseen.chunks}
        lines = kept.lines_of([o.pk for o in chunks], epoch=view.record.epoch)
        found = [line for line in lines if self._holds(line.text)]
        for line in found[:MOST]:
            when = "shown with the next request" if line.observation_id in soon else "waiting"
            place = f"In buffered chunk {number[line.observation_id]}, not visible yet ({when})"
            yield Hit(place, line.text, f"/memory/{self.ahead.thread_id}/", "waiting")

    def _in_past_lines(self, visible: set[str]) -> Iterator[Hit]:
        """Yield lines that were shown once, and what took them out of sight."""
        view = self.ahead.view
        if view is None:
            return
        rows = Line.objects.filter(
            holding("text", self.text), observation__record=view.record.pk, until__isnull=False
        ).order_by("-until")
        past = [line for line in rows[: 2 * MOST] if line.text not in visible][:MOST]
        numbers = {line.until or 0 for line in past}
        of_record = Revision.objects.filter(record=view.record.pk, number__in=numbers)
        causes = dict(of_record.values_list("number", "cause"))
        for line in past:
            why = _WHY.get(causes.get(line.until or 0, ""), "taken out of sight at revision")
            # As it was, one revision before.
            href = f"/memory/{self.ahead.thread_id}/?rev={(line.until or 1) - 1}#line-{line.pk}"
            yield Hit(f"A line {why} {line.until}", line.text, href, "out")

    def _elsewhere(self) -> Iterator[Hit]:
        thread = self.ahead.state.thread
        others = self.threads.filter(resource=thread.resource_id).exclude(pk=thread.pk)
        rows = Message.objects.filter(holding("text", self.text), thread__in=others.values("pk"))
        newest = rows.order_by("-created_at").values_list("thread", "position", "text")
        found = list(newest[:MOST_ELSEWHERE])
        titles = _titles({thread for thread, _, _ in found})
        for thread_id, position, text in found:
            href = f"/chat/{thread_id}/?from={position}#message-{position}"
            place = f"In another conversation, “{titles[thread_id]}”"
            yield Hit(place, self._around(text), href, "out")

    @staticmethod
    def _masked(hit: Hit) -> Hit:
        return replace(hit, text=masked_text(hit.text))

    def _around(self, text: str) -> str:
        # Before it is cut: the rest of a key has no shape any more.
        text = masked_text(text)
        at = text.casefold().find(self.text.casefold())
        start = max(0, at - 40)
        return ("…" if start else "") + words.first_words(text[start : start + 400], 160)


_WHY = {
    "reflect": "dropped by the reflection of revision",
    "edit": "replaced by an edit at revision",
    "forget": "forgotten at revision",
    "clear": "cleared at revision",
    "erase": "erased at revision",
    "restore": "put back out of sight at revision",
    "pin": "replaced by a pin at revision",
    "note": "replaced at revision",
}


def _titles(ids: set[UUID]) -> dict[UUID, str]:
    return {thread.pk: str(thread) for thread in Thread.objects.filter(pk__in=ids)}
