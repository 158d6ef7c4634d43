"""Have models do a cycle's thinking: the model chosen, hooks told, values extracted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.usage import RunUsage

from memory import observer, phases
from memory.ask import Reply
from memory.config import MemoryOptions, Phase
from memory.engine.values import ObserverOutput, ObserverRequest
from memory.extraction import Extracted, hand_over, read_values
from memory.hooks import Hooks, Occasion
from memory.llm import Available, first_available
from memory.structured import extract_structured
from memory.tokens import count

from .cycles import FALLBACK_MODEL, Resolve
from .material import Material

UNASKED = Reply(text="", model="", input_tokens=0, output_tokens=0, cost=None)


@dataclass(frozen=True)
class Thought:
    """Hold what an Observer made of one thread, and the values extracted there so far.

    ``output`` is None when the reply says nothing readable about this thread.
    """

    output: ObserverOutput | None
    extracted: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Thoughts:
    """Hold one answer of an Observer, thread by thread, with the request it was an answer to."""

    each: tuple[Thought, ...]
    request: ObserverRequest
    reply: Reply
    note: str = ""


async def think(
    material: Material,
    request: ObserverRequest,
    occasion: Occasion,
    *,
    hooks: Hooks,
    resolve: Resolve,
    fallback: bool = False,
) -> Thoughts:
    """Return what the Observer makes of a frozen material.

    ``request`` is the material's own; hooks may change what is asked. Where there is nothing to
    read nothing is asked, and the output has no lines. Raises what the model raises, BadOutput,
    HookFailed, TierExceeded and ModelUnavailable.
    """
    changed = await _before(material, hooks)
    if changed is not material:
        material, request = changed, changed.request()
    if not request.numbers:
        nothing = Thought(ObserverOutput(lines=()))
        return Thoughts((nothing,) * len(material.sections), request, UNASKED)
    async with hooks.observing(occasion) as work:
        tokens = await asyncio.to_thread(count, "\n".join(request.prompt))
        chosen = await choose(
            material.options, "observer", material.actor_model, tokens, resolve, fallback=fallback
        )
        outputs, reply = await _ask(material, request, chosen)
        work.usage = usage_of(reply)
        bill = RunUsage()
        each = [await _thought(material, n, o, occasion, hooks, chosen, bill) for n, o in outputs]
        reply = reply.with_bill(bill)
        work.usage = usage_of(reply)
    return Thoughts(tuple(each), request, reply, " ".join(chosen.skipped))


async def choose(
    options: MemoryOptions,
    phase: Phase,
    actor_model: str,
    tokens: int,
    resolve: Resolve,
    *,
    fallback: bool = False,
) -> Available:
    """Return the model of a phase: the first of its chain that is set up."""
    names: Sequence[str] = (FALLBACK_MODEL,)
    if not fallback:
        names = phases.chain(options, phase, actor_model, tokens=tokens)
    return await asyncio.to_thread(first_available, names, resolve)


def usage_of(reply: Reply) -> dict[str, Any]:
    """Return what a reply used, as hooks are told."""
    return {
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost": reply.cost,
    }


async def _before(material: Material, hooks: Hooks) -> Material:
    before = [section.messages for section in material.sections]
    after = [await hooks.transform("before_observation", messages) for messages in before]
    unchanged = all(a is b for a, b in zip(after, before, strict=True))
    return material if unchanged else material.with_messages(after)


async def _ask(
    material: Material, request: ObserverRequest, chosen: Available
) -> tuple[Sequence[tuple[int, ObserverOutput | None]], Reply]:
    asked: dict[str, Any] = {
        "model": chosen.model,
        "tz": material.zone,
        "settings": phases.model_settings(material.options, "observer", chosen.model),
        "media": material.files,
    }
    if request.sections:
        many = await observer.observe_many(request, **asked)
        return list(enumerate(many.outputs)), many.reply
    one = await observer.observe(request, **asked)
    return [(0, one.output)], one.reply


async def _thought(
    material: Material,
    index: int,
    output: ObserverOutput | None,
    occasion: Occasion,
    hooks: Hooks,
    chosen: Available,
    bill: RunUsage,
) -> Thought:
    if output is None:
        return Thought(None)
    output = await hooks.transform("after_observation", output)
    before = material.extracted[index]
    extracted = await _extracted(material, output, before, occasion, chosen, bill)
    failures = "; ".join(f"{slug}: {why}" for slug, why in extracted.failures.items())
    note = f"Not extracted: {failures}" if failures else ""
    return Thought(output, {**before, **extracted.values}, note)


async def _extracted(
    material: Material,
    output: ObserverOutput,
    before: Mapping[str, Any],
    occasion: Occasion,
    chosen: Available,
    bill: RunUsage,
) -> Extracted:
    extractors = material.extractors
    if not extractors:
        return Extracted()
    found = read_values(extractors, output.extracted)
    said = "\n".join(line.text for line in output.lines)
    found |= await extract_structured(
        extractors,
        said,
        model=chosen.model,
        previous=before,
        settings=phases.model_settings(material.options, "observer", chosen.model),
        bill=bill,
    )
    return await hand_over(extractors, found, occasion, observed=output)
