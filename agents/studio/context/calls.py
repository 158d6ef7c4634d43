"""Read one call of an Observer or a Reflector: what it was asked, said, and what was made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from zoneinfo import ZoneInfo

from agents import words
from agents.lines import LineShown, line_shown
from agents.markers import Fact, state_and_words, triggered
from agents.secrets import masked_text
from memory.models import Blob, Cycle, Line, Message, Observation

MOST_MESSAGES = 60
MOST_ATTEMPTS = 20
#: So much of a message is looked at for its first words, so that no key is cut in two there.
BEGINNING = 4_000
REFLECTS = (Cycle.Kind.REFLECT, Cycle.Kind.BUFFER_REFLECTION)


@dataclass(frozen=True)
class Written:
    """Show one line as it was read from the reply, and what became of it."""

    line: LineShown
    fate: str


@dataclass(frozen=True)
class Covered:
    """Show one message that the call was about."""

    position: int
    who: str
    clock: str
    tokens: int
    text: str


@dataclass(frozen=True)
class Attempt:
    """Show one other call about the same range."""

    key: str
    state: str
    words: str
    at: str
    error: str
    current: bool


class Call:
    """Read a cycle with all that stands around it; each thing once, when it is asked for."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.zone = ZoneInfo(cycle.record.resource.time_zone)

    @property
    def reflects(self) -> bool:
        """Tell whether it is a Reflector's call."""
        return self.cycle.kind in REFLECTS

    @property
    def who(self) -> str:
        """Return who was called."""
        return "Reflector" if self.reflects else "Observer"

    @cached_property
    def status(self) -> tuple[str, str]:
        """Return how it stands: the state that styles it, and the words that say it."""
        return state_and_words(self.cycle, self.observation)

    @cached_property
    def observation(self) -> Observation | None:
        """Return what the call wrote, with its lines as they were written."""
        return Observation.objects.filter(cycle=self.cycle).order_by("pk").first()

    @cached_property
    def _texts(self) -> dict[str, str]:
        hashes = [h for h in (self.cycle.request_hash, self.cycle.reply_hash) if h]
        return dict(Blob.objects.filter(hash__in=hashes).values_list("hash", "text"))

    @property
    def request(self) -> str | None:
        """Return what was asked; None where it is not kept."""
        return self._text(self.cycle.request_hash)

    @property
    def reply(self) -> str | None:
        """Return the raw reply; None where there is none, or it is not kept."""
        return self._text(self.cycle.reply_hash)

    def _text(self, digest: str) -> str | None:
        text = self._texts.get(digest)
        return None if text is None else masked_text(text)

    @property
    def no_request(self) -> str:
        """Return why there is no request to show."""
        if self.cycle.status == Cycle.Status.RUNNING:
            return "The request is kept once the call has ended."
        if self.cycle.status == Cycle.Status.CANCELLED:
            return "The call was cancelled before its request was kept."
        if self.cycle.interrupted:
            return "The process that ran this call stopped before it could keep the request."
        return "The text is not kept any more; its hash is."

    @property
    def no_reply(self) -> str:
        """Return why there is no reply to show."""
        if self.cycle.reply_hash:
            return "The text is not kept any more; its hash is."
        if self.cycle.status == Cycle.Status.RUNNING:
            return "The model has not answered yet."
        return "No reply was kept: the model gave none, or the call ended before it came."

    @cached_property
    def lines(self) -> Sequence[Written]:
        """Return the lines that were read from the reply."""
        if self.observation is None:
            return []
        rows = Line.objects.filter(observation=self.observation, replaces__isnull=True)
        return [self._written(row) for row in rows.order_by("ordinal")]

    def _written(self, row: Line) -> Written:
        line = line_shown(row, self.zone)
        return Written(replace(line, text=masked_text(line.text)), _fate(row))

    @cached_property
    def covered(self) -> Sequence[Covered]:
        """Return the messages the call was about, the first of many."""
        cycle = self.cycle
        if cycle.first_position is None or cycle.last_position is None or self.reflects:
            return []
        rows = Message.objects.within(cycle.thread_id, cycle.first_position, cycle.last_position)
        found = rows.values_list("position", "kind", "created_at", "tokens", "text")
        return [
            Covered(
                position,
                "assistant" if kind == Message.Kind.RESPONSE else "user",
                words.clock(at.astimezone(self.zone)),
                tokens,
                words.first_words(masked_text(text[:BEGINNING]), 160),
            )
            for position, kind, at, tokens, text in found[:MOST_MESSAGES]
        ]

    @property
    def range(self) -> str:
        """Return in words which messages the call was about."""
        first, last = self.cycle.first_position, self.cycle.last_position
        if first is None or last is None or self.reflects:
            return ""
        return f"message {first}" if first == last else f"messages {first}–{last}"

    @property
    def uncounted(self) -> int:
        """Return how many more messages there are than are shown."""
        first, last = self.cycle.first_position or 0, self.cycle.last_position or 0
        return max(0, last - first + 1 - MOST_MESSAGES) if self.covered else 0

    @cached_property
    def sources(self) -> int:
        """Return how many rows a reflection was made from."""
        return self.observation.source_links.count() if self.observation is not None else 0

    @cached_property
    def sharers(self) -> Sequence[Cycle]:
        """Return the cycles of other conversations that the same call served."""
        others = Cycle.objects.filter(call=self.cycle.call).exclude(pk=self.cycle.pk)
        return list(others.select_related("thread").order_by("started_at", "pk"))

    @cached_property
    def attempts(self) -> Sequence[Attempt]:
        """Return all calls about the same range, the oldest first, if there was more than one."""
        cycle = self.cycle
        same = Cycle.objects.filter(record=cycle.record_id, lane=cycle.lane)
        if self.reflects:
            same = same.filter(message_tokens=cycle.message_tokens)
        else:
            same = same.filter(first_position=cycle.first_position)
        found = list(same.order_by("started_at", "pk")[:MOST_ATTEMPTS])
        return [self._attempt(each) for each in found] if len(found) > 1 else []

    def _attempt(self, cycle: Cycle) -> Attempt:
        state, text = state_and_words(cycle, None)
        if cycle.status == Cycle.Status.DONE:
            text = text.partition(" · ")[0]
        return Attempt(
            str(cycle.pk),
            state,
            text,
            f"{cycle.started_at.astimezone(self.zone):%-d %b %H:%M:%S}",
            cycle.error,
            cycle.pk == self.cycle.pk,
        )

    def facts(self) -> Iterator[Fact]:
        """Yield what is known of the call in numbers."""
        cycle = self.cycle
        yield Fact("asked because", triggered(cycle.trigger))
        yield Fact("model", cycle.model or "–")
        yield Fact("started", f"{cycle.started_at.astimezone(self.zone):%-d %b %Y %H:%M:%S}")
        if cycle.finished_at is not None:
            yield Fact("took", words.lasted(cycle.finished_at - cycle.started_at))
        if cycle.input_tokens or cycle.output_tokens:
            yield Fact("input", f"{cycle.input_tokens} tokens")
            yield Fact("output", f"{cycle.output_tokens} tokens")
        yield Fact("cost", "not known" if cycle.cost is None else f"${cycle.cost.normalize():f}")
        yield Fact("attempt", str(cycle.attempt))
        if self.reflects:
            yield Fact("level", str(cycle.level))
        yield Fact("read", f"{cycle.message_tokens} tokens")
        if self.observation is not None:
            yield Fact("wrote", f"{self.observation.tokens} tokens")


def _fate(line: Line) -> str:
    if line.since is None:
        return "waits"
    if line.until is None:
        return f"shown since revision {line.since}"
    return f"shown from revision {line.since}, gone since {line.until}"
