"""Freeze what an Observer is asked, so that it can be asked outside any transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from pydantic_ai.messages import UserContent

from memory import media
from memory.config import MemoryOptions
from memory.engine.prompts.observer import observer_request, observer_request_of
from memory.engine.values import Line as LineValue
from memory.engine.values import Message, ObserverRequest, Part, Section
from memory.extraction import Extractor, resolve, written_before
from memory.extraction import to_write as to_write_for
from memory.models import Line, Observation
from memory.tokens import TOKENIZER

from . import kept
from .look import Other, View, line_value


@dataclass(frozen=True)
class Material:
    """Hold the threads to observe, what was written before, and how it is to be written.

    ``sections`` has one entry a thread; ``extracted`` the values extracted so far, by thread;
    ``actor_model`` names the model that observes when no other can.
    """

    sections: tuple[Section, ...]
    extracted: tuple[Mapping[str, Any], ...]
    previous: tuple[LineValue, ...]
    options: MemoryOptions
    zone: ZoneInfo
    actor_model: str
    extractors: tuple[Extractor, ...] = ()
    files: Mapping[str, UserContent] = field(default_factory=dict)

    def request(self) -> ObserverRequest:
        """Return the request: that of one thread, or of several under their labels."""
        options = self.options
        shared: dict[str, Any] = {
            "previous": self.previous,
            "tz": self.zone,
            "tokenizer": TOKENIZER,
            "previous_tokens": options.previous_observer_tokens,
            "want_title": options.thread_title,
            "want_task": options.continuation_hints.current_task,
            "want_suggestion": options.continuation_hints.suggested_response,
            "instruction": options.instruction,
            "style": options.observer_prompt,
            "extract": to_write_for(self.extractors),
            "attachments": self._passes,
        }
        if len(self.sections) > 1:
            return observer_request_of(self.sections, **shared)
        (only,) = self.sections
        return observer_request(only.messages, hints=only.hints, extracted=only.extracted, **shared)

    def with_messages(self, messages: Sequence[Sequence[Message]]) -> Material:
        """Return the material with other messages in its sections."""
        pairs = zip(self.sections, messages, strict=True)
        return replace(
            self, sections=tuple(replace(section, messages=new) for section, new in pairs)
        )

    def _passes(self, part: Part) -> bool:
        return part.media in self.files


def material_of(view: View, ranges: Sequence[tuple[Other, int, int]]) -> Material:
    """Return the material about ranges of positions, one a thread, as of a view."""
    extractors = resolve(view.options.extract)
    stretches = [
        [raw for raw in tail.raw if first <= raw.position <= last] for tail, first, last in ranges
    ]
    extracted = _extracted(view, [tail for tail, _, _ in ranges])
    return Material(
        sections=tuple(
            Section(
                label=tail.label,
                messages=[raw.value for raw in stretch],
                hints=view.hints if tail.thread == view.thread.pk else tail.hints,
                extracted=written_before(extractors, values),
            )
            for (tail, _, _), stretch, values in zip(ranges, stretches, extracted, strict=True)
        ),
        extracted=tuple(extracted),
        previous=tuple(line_value(line) for line in _previous(view)),
        options=view.options,
        zone=view.zone,
        actor_model=view.actor_model,
        extractors=extractors,
        files=_files(view, [raw for stretch in stretches for raw in stretch]),
    )


def _extracted(view: View, tails: Sequence[Other]) -> list[Mapping[str, Any]]:
    """Return what was extracted last of each thread, of what waits for activation too."""
    known: dict[UUID | None, Mapping[str, Any]]
    known = {tail.thread: tail.buffered[-1].extracted for tail in tails if tail.buffered}
    known.setdefault(view.thread.pk, view.extracted)
    ends = {t.thread: t.observed_through for t in tails if t.thread not in known}
    if any(ends.values()):
        shown = Observation.objects.filter(
            record=view.record,
            kind=Observation.Kind.OBSERVATION,
            since__lte=view.revision,
            thread__in=ends,
            last_position__in=set(ends.values()),
        )
        at_the_end = [o for o in shown if (o.thread_id, o.last_position) in ends.items()]
        known |= {o.thread_id: o.extracted for o in at_the_end}
    return [known.get(tail.thread, {}) for tail in tails]


def _files(view: View, raws: Sequence[kept.Raw]) -> Mapping[str, UserContent]:
    allowed = view.options.observe_attachments
    chosen = view.options.observer_model
    reader = chosen if chosen and isinstance(chosen, str) else settings.MEMORY_MODELS["observer"]
    return {
        part.media: content
        for raw in raws
        for part, content in raw.files
        if media.passes(part.media_type, allowed, model=reader)
    }


def _previous(view: View) -> Sequence[Line]:
    """Return all lines written so far; a waiting reflection stands for its sources already."""
    lines: list[Line] = list(view.lines)
    epoch = view.record.epoch
    if view.reflection is not None and view.waiting_reflection is not None:
        condensed = kept.sources_of(view.waiting_reflection, epoch=epoch)
        loose = [x for x in lines if x.observation_id not in condensed or x.pinned]
        lines = [*kept.lines_of([view.waiting_reflection], epoch=epoch), *loose]
    buffered = [o for tail in view.tails for o in tail.buffered]
    waiting = [o.pk for o in sorted(buffered, key=lambda o: o.pk)]
    return [*lines, *kept.lines_of(waiting, epoch=epoch)]
