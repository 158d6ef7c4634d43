"""Say what stands beside the next request: why blocks are empty, what is not sent, what to mind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents import words
from agents.services.told import INSTRUCTIONS, TOOLS
from agents.studio.context.ahead import Ahead
from agents.studio.context.inspected import MEMORY, MESSAGE, OTHERS, REMINDER
from memory.services.request import LEFT_OUT

SHORTER = (
    "Choose a model with a larger window, shorten the message, or lower message_tokens and "
    "observation_tokens."
)


@dataclass(frozen=True)
class Notice:
    """Say something about a request; ``look`` is warn, bad or plain."""

    look: str
    words: str


def reasons(ahead: Ahead) -> dict[str, str]:
    """Return why each kind of block would be empty, where it is."""
    return {**_reasons(ahead), **dict.fromkeys(ahead.asked.drop, "left out, as you suppose")}


def _reasons(ahead: Ahead) -> dict[str, str]:
    found = {
        INSTRUCTIONS: "the agent has none",
        TOOLS: "the agent has none, or its memory options switch them off",
        MESSAGE: "nothing unobserved was said before",
        REMINDER: "there is no memory and no hint to remind of",
    }
    if ahead.profile is None:
        found[INSTRUCTIONS] = found[TOOLS] = "the agent of this conversation is gone"
    view = ahead.view
    if view is None:
        return {**found, **dict.fromkeys((MEMORY, OTHERS, REMINDER), "memory is off here")}
    found[MEMORY] = "nothing is observed yet"
    if view.observed_through:
        found[MEMORY] = "every line was forgotten, cleared or erased"
    if view.record.thread_id is not None:
        found[OTHERS] = "not in this scope: the conversation has a memory of its own"
    elif not view.options.other_conversations_tokens:
        found[OTHERS] = "the option other_conversations_tokens is 0"
    else:
        found[OTHERS] = "all that other conversations said is observed"
    return found


def fix(ahead: Ahead) -> str:
    """Return what to do where the model's window has no room for everything; else nothing."""
    window = ahead.window
    over = window is not None and ahead.total > window
    dropped = any(block["kind"] == LEFT_OUT for block in ahead.blocks)
    return SHORTER if over or dropped else ""


def notices(ahead: Ahead) -> Iterator[Notice]:
    """Yield what to mind about the next request, what matters most first."""
    yield from _of_window(ahead)
    if ahead.profile is None:
        agent = ahead.state.thread.agent
        yield Notice("bad", f"The agent “{agent}” is gone: a turn would fail before it is sent.")
    wait = ahead.foreseen.prepared.wait_seconds
    if wait:
        yield Notice(
            "warn",
            "More is raw than the ceiling allows: the turn will wait up to "
            f"{wait:g} s for an observation, and the request may be shorter then.",
        )
    if _is_bare(ahead):
        yield Notice(
            "warn",
            f"The conversation has {ahead.stored} messages, but nothing of them would be sent.",
        )
    yield from _of_turns(ahead)
    yield from _before(ahead)


def _of_window(ahead: Ahead) -> Iterator[Notice]:
    window, dropped = ahead.window, ahead.inspected.of(LEFT_OUT)
    if dropped:
        tokens = sum(part.tokens for part in dropped)
        spans = " and ".join(_span(part.first, part.last) for part in dropped)
        yield Notice(
            "bad",
            f"The window of {words.tokens(window or 0)} tokens has no room for all of it: "
            f"{spans} ({words.tokens(tokens)} tokens) would be left out. They stay stored. "
            f"{SHORTER}",
        )
    if window is not None and ahead.total > window:
        over = words.tokens(ahead.total - window)
        advice = "" if dropped else f" {SHORTER}"
        yield Notice("bad", f"{over} tokens over the model’s window, even so.{advice}")


def _span(first: int | None, last: int | None) -> str:
    return f"message {first}" if first == last else f"messages {first}–{last}"


def _is_bare(ahead: Ahead) -> bool:
    """Tell whether nothing at all stands for what was said before."""
    inspected = ahead.inspected
    if inspected.of(MEMORY) or inspected.of(MESSAGE) or len(inspected.said) > 1:
        return False
    return ahead.stored > 0


def _of_turns(ahead: Ahead) -> Iterator[Notice]:
    if ahead.running is not None:
        yield Notice(
            "plain",
            f"Turn {ahead.running.number} is being answered: what it still says comes into the "
            "next request.",
        )
    waiting = ahead.waiting
    if waiting and not ahead.asked.draft:
        yield Notice("plain", f"This is the request of turn {waiting[0].number}, which waits.")
    elif waiting:
        said = "1 prompt waits" if len(waiting) == 1 else f"{len(waiting)} prompts wait"
        yield Notice("plain", f"{said} and will be answered before your draft.")


def _before(ahead: Ahead) -> Iterator[Notice]:
    count = len(ahead.foreseen.chunks)
    if count:
        said = "1 buffered chunk is" if count == 1 else f"{count} buffered chunks are"
        yield Notice("plain", f"{said} activated first, and counted here already.")
    if ahead.foreseen.reflects:
        yield Notice("plain", "The reflection that waits takes its place first.")


def not_sent(ahead: Ahead) -> str:
    """Return in words what the next request leaves out, because memory stands for it or waits."""
    view = ahead.foreseen.prepared.view
    if view is None:
        return ""
    observed, said = ahead.observed, []
    if observed["messages"]:
        unit = "message" if observed["messages"] == 1 else "messages"
        tokens = words.tokens(observed["tokens"])
        said.append(f"{observed['messages']} {unit} ({tokens}, observed)")
    chunks = [o for tail in view.tails for o in tail.buffered]
    if chunks:
        tokens = words.tokens(sum(chunk.tokens for chunk in chunks))
        unit = "chunk" if len(chunks) == 1 else "chunks"
        said.append(f"{len(chunks)} buffered {unit} ({tokens}, waiting)")
    if view.reflection is not None:
        said.append(f"1 reflection ({words.tokens(view.reflection.tokens)}, waiting)")
    return " · ".join(said)
