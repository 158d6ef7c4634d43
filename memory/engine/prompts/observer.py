"""Write the Observer's request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise
from typing import Literal

from memory.engine.escape import clean, escape
from memory.engine.prompts.previous import previous_observations
from memory.engine.prompts.wanted import Style, Wanted
from memory.engine.transcript import Tokenizer, Transcript, no_media, transcript
from memory.engine.values import (
    HINTS,
    Attachment,
    Hints,
    Line,
    Message,
    ObserverRequest,
    Part,
    Section,
    SectionNumbers,
)

PREVIOUS_TOKENS = 2_000

_UNLABELLED = re.compile(r"[^\w.-]+")
_LONGEST_LABEL = 80


def observer_request(
    messages: Sequence[Message],
    *,
    previous: Sequence[Line],
    hints: Hints,
    tz: tzinfo,
    tokenizer: Tokenizer,
    previous_tokens: int | Literal[False] = PREVIOUS_TOKENS,
    want_title: bool = False,
    instruction: str = "",
    want_task: bool = True,
    want_suggestion: bool = True,
    style: Style = "full",
    extract: Sequence[tuple[str, str]] = (),
    extracted: Mapping[str, str] | None = None,
    attachments: Callable[[Part], bool] = no_media,
) -> ObserverRequest:
    """Return the request to observe messages.

    ``previous`` are the lines written before, oldest first, shown as far as ``previous_tokens``
    allow (False: all of them); ``instruction`` is what the memory's owner adds to ours.
    ``extract`` are further texts to write, by name, each with what to write, and ``extracted``
    those written last. ``attachments`` says which media is to be shown, not only named. When no
    message has anything to read, ``numbers`` is empty and nothing need be asked.
    """
    wanted = Wanted(want_task, want_suggestion, want_title, extract, style, instruction)
    section = Section("", messages, hints, extracted or {})
    written = _written([section], tz, tokenizer, attachments)
    earlier = previous_observations(previous, budget=previous_tokens, tz=tz, tokenizer=tokenizer)
    return _request(
        wanted,
        earlier=earlier,
        hints=_hints(section, wanted),
        conversation=_conversation(written),
        sections=(),
    )


def observer_request_of(
    sections: Sequence[Section],
    *,
    previous: Sequence[Line],
    tz: tzinfo,
    tokenizer: Tokenizer,
    previous_tokens: int | Literal[False] = PREVIOUS_TOKENS,
    want_title: bool = False,
    instruction: str = "",
    want_task: bool = True,
    want_suggestion: bool = True,
    style: Style = "full",
    extract: Sequence[tuple[str, str]] = (),
    attachments: Callable[[Part], bool] = no_media,
) -> ObserverRequest:
    """Return the request to observe several threads in one call; see ``observer_request``.

    The request's ``sections`` are in the order given, each with the label it is printed under. A
    thread without anything to read is not printed, and has no numbers.
    """
    wanted = Wanted(want_task, want_suggestion, want_title, extract, style, instruction)
    labels = _labels(sections)
    written = _written(sections, tz, tokenizer, attachments)
    told = [
        (label, _hints(section, wanted))
        for label, section, one in zip(labels, sections, written, strict=True)
        if one.numbers
    ]
    return _request(
        wanted,
        earlier=previous_observations(previous, budget=previous_tokens, tz=tz, tokenizer=tokenizer),
        hints="\n".join(_thread(label, hints) for label, hints in told if hints),
        conversation=_conversation(written, labels),
        sections=tuple(
            SectionNumbers(label, one.numbers) for label, one in zip(labels, written, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Hold the conversation's text, where its media goes, and its numbers."""

    text: str
    media: tuple[tuple[int, str], ...]
    numbers: Mapping[int, int]


def _written(
    sections: Sequence[Section],
    tz: tzinfo,
    tokenizer: Tokenizer,
    attachments: Callable[[Part], bool],
) -> list[Transcript]:
    written: list[Transcript] = []
    before = Transcript("", {})
    for section in sections:
        number = max((max(one.numbers, default=0) for one in written), default=0) + 1
        before = transcript(
            section.messages,
            tz=tz,
            tokenizer=tokenizer,
            first_number=number,
            images=before.images,
            files=before.files,
            attachments=attachments,
        )
        written.append(before)
    return written


def _conversation(written: Sequence[Transcript], labels: Sequence[str] = ()) -> _Conversation:
    """Return the threads one below the other; without labels the only one, untagged."""
    text = "<conversation>"
    media: list[tuple[int, str]] = []
    for index, one in enumerate(written):
        if labels and not one.numbers:
            continue
        opening = f'\n<thread id="{labels[index]}">\n' if labels else "\n"
        start = len(text) + len(opening)
        media += [(start + at, key) for at, key in one.media]
        text += f"{opening}{one.text}{_closing(labels)}"
    numbers = {number: at for one in written for number, at in one.numbers.items()}
    return _Conversation(f"{text}\n</conversation>", tuple(media), numbers)


def _closing(labels: Sequence[str]) -> str:
    return "\n</thread>" if labels else ""


def _labels(sections: Sequence[Section]) -> list[str]:
    """Return a label for each section that any model can copy, and none twice."""
    labels: list[str] = []
    for number, section in enumerate(sections, start=1):
        label = _UNLABELLED.sub("_", section.label)[:_LONGEST_LABEL] or str(number)
        if label.lower() in (known.lower() for known in labels):
            label = f"{label}-{number}"
        labels.append(label)
    return labels


def _thread(label: str, text: str) -> str:
    return f'<thread id="{label}">\n{text}\n</thread>'


def _request(
    wanted: Wanted,
    *,
    earlier: str,
    hints: str,
    conversation: _Conversation,
    sections: tuple[SectionNumbers, ...],
) -> ObserverRequest:
    before = [_block("previous-observations", earlier), _block("hints", hints)]
    task = _task(
        conversation.numbers,
        labels=[one.label for one in sections if one.numbers],
        appended=bool(earlier),
        hinted=bool(hints),
    )
    told = [part for part in before if part]
    return ObserverRequest(
        instructions=wanted.instructions(several=bool(sections)),
        prompt=(*told, *_pieces(conversation), task),
        numbers=conversation.numbers,
        sections=sections,
        attachments=tuple(
            Attachment(len(told) + index, key) for index, (_, key) in enumerate(conversation.media)
        ),
        wanted=wanted.hints,
        extract=wanted.names,
    )


def _pieces(conversation: _Conversation) -> list[str]:
    """Return the conversation cut where media goes; the line end at a cut is left out."""
    cuts = [-1, *(at for at, _ in conversation.media), len(conversation.text)]
    return [conversation.text[before + 1 : after] for before, after in pairwise(cuts)]


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if text else ""


def _hints(section: Section, wanted: Wanted) -> str:
    hints = section.hints
    values = (hints.current_task, hints.suggested_response, hints.thread_title)
    told = dict(zip(HINTS, values, strict=True)) | dict(section.extracted)
    asked = (*wanted.hints, *wanted.names)
    return "\n".join(
        f"<{tag}>{escape(clean(told[tag]).strip(), asked)}</{tag}>"
        for tag in asked
        if told.get(tag, "").strip()
    )


def _task(
    numbers: Mapping[int, int], *, labels: Sequence[str], appended: bool, hinted: bool
) -> str:
    """Return what to do now; it comes last, so that no message can follow it."""
    sentences = [
        f"The conversation ends here. Write your observations about {_range(numbers)} now, in the "
        "form your instructions give.",
        f"Write a block for each thread: {', '.join(labels)}." if labels else "",
        "They are added to the previous observations, which stay: repeat none of those."
        if appended
        else "",
        "Bring the hints up to date." if hinted else "",
        "Write the observations block in any case.",
    ]
    return f"<instructions>\n{' '.join(filter(None, sentences))}\n</instructions>"


def _range(numbers: Mapping[int, int]) -> str:
    first, last = min(numbers, default=0), max(numbers, default=0)
    return f"message [#{first}]" if first == last else f"messages [#{first}] to [#{last}]"
