"""Write the Observer's request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from memory.engine.escape import clean, escape
from memory.engine.prompts.instructions import OBSERVER, OPTIONAL_BLOCKS, TITLE
from memory.engine.prompts.previous import previous_observations
from memory.engine.transcript import Tokenizer, Transcript, transcript
from memory.engine.values import Hints, Line, Message, ObserverRequest

PREVIOUS_TOKENS = 2_000


def observer_request(
    messages: Sequence[Message],
    *,
    previous: Sequence[Line],
    hints: Hints,
    tz: tzinfo,
    tokenizer: Tokenizer,
    previous_tokens: int = PREVIOUS_TOKENS,
    want_title: bool = False,
    instruction: str = "",
) -> ObserverRequest:
    """Return the request to observe messages.

    ``previous`` are the lines written before, oldest first, shown as far as
    ``previous_tokens`` allow; ``instruction`` is what the memory's owner adds to ours. When
    no message has anything to read, ``numbers`` is empty and nothing need be asked.
    """
    written = transcript(messages, tz=tz, tokenizer=tokenizer)
    earlier = previous_observations(previous, budget=previous_tokens, tz=tz, tokenizer=tokenizer)
    known = _hints(hints, want_title=want_title)
    parts = (
        _block("previous-observations", earlier),
        _block("hints", known),
        f"<conversation>\n{written.text}\n</conversation>",
        _task(written, appended=bool(earlier), hinted=bool(known)),
    )
    return ObserverRequest(
        instructions=_instructions(want_title=want_title, instruction=instruction),
        prompt=tuple(part for part in parts if part),
        numbers=written.numbers,
    )


def _instructions(*, want_title: bool, instruction: str) -> str:
    text = f"{OBSERVER}{TITLE if want_title else ''}{OPTIONAL_BLOCKS}"
    added = clean(instruction).strip()
    return f"{text}\n\n## From the owner of this memory\n\n{added}" if added else text


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if text else ""


def _hints(hints: Hints, *, want_title: bool) -> str:
    told = {
        "current-task": hints.current_task,
        "suggested-response": hints.suggested_response,
        "thread-title": hints.thread_title if want_title else "",
    }
    return "\n".join(
        f"<{tag}>{escape(clean(text).strip())}</{tag}>"
        for tag, text in told.items()
        if text.strip()
    )


def _task(written: Transcript, *, appended: bool, hinted: bool) -> str:
    """Return what to do now; it comes last, so that no message can follow it."""
    sentences = [
        f"The conversation ends here. Write your observations about {_range(written)} now, in the "
        "form your instructions give.",
        "They are added to the previous observations, which stay: repeat none of those."
        if appended
        else "",
        "Bring the hints up to date." if hinted else "",
        "Write the observations block in any case.",
    ]
    return f"<instructions>\n{' '.join(filter(None, sentences))}\n</instructions>"


def _range(written: Transcript) -> str:
    first, last = min(written.numbers, default=0), max(written.numbers, default=0)
    return f"message [#{first}]" if first == last else f"messages [#{first}] to [#{last}]"
