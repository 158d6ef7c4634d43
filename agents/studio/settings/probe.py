"""Try a model out with one tiny call and say whether it answers, how fast, for how much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

from agents import costs, words
from memory import llm
from memory.ask import Question, Reply, ask
from memory.config import MemoryOptions, Phase
from memory.phases import chain
from memory.services.cycles import Resolve, resolve_model
from memory.tiers import TokenTiers

SECONDS = 20.0
MOST = 6
INSTRUCTIONS = "Answer with the one word: ready."
PROMPT = "Are you ready?"


@dataclass(frozen=True)
class Tried:
    """Show how a model did; ``said`` is its answer, or what went wrong in a sentence."""

    name: str
    well: bool
    said: str
    took: str
    tokens: str = ""
    cost: str = ""


def models_of(options: MemoryOptions, phase: Phase, actor_model: str) -> list[str]:
    """Return the models a phase would use: all of its tiers, or the first of those tried."""
    own = options.observer_model if phase == "observer" else options.reflector_model
    if isinstance(own, dict):
        return list(dict.fromkeys(model for _, model in TokenTiers.of(own).tiers))[:MOST]
    return list(chain(options, phase, actor_model, tokens=1))[:1]


async def try_all(names: Iterable[str], *, resolve: Resolve = resolve_model) -> list[Tried]:
    """Try several models at once, each within its time."""
    return list(await asyncio.gather(*(try_out(name, resolve=resolve) for name in names)))


async def try_out(
    name: str, *, resolve: Resolve = resolve_model, seconds: float = SECONDS
) -> Tried:
    """Ask a model one question and return how it did; a failure is told, never raised."""
    began = perf_counter()
    try:
        async with asyncio.timeout(seconds):
            model = await asyncio.to_thread(resolve, name)
            reply = await ask(Question("test", INSTRUCTIONS, [PROMPT], model))
    except TimeoutError:
        return _failed(name, f"No answer within {seconds:.0f} seconds.", began)
    except Exception as error:  # noqa: BLE001 - whatever fails is what the test is to tell
        return _failed(name, llm.explain(error), began)
    return _answered(name, reply, began)


def _failed(name: str, said: str, began: float) -> Tried:
    return Tried(name, False, said, words.since(began))


def _answered(name: str, reply: Reply, began: float) -> Tried:
    cost = reply.cost
    if cost is None:
        cost = costs.price(name, reply.input_tokens, reply.output_tokens)
    return Tried(
        name,
        True,
        words.first_words(reply.text, 80) or "It answered with nothing.",
        words.since(began),
        f"{reply.input_tokens} in, {reply.output_tokens} out",
        costs.words(cost),
    )


@dataclass(frozen=True)
class Cover:
    """Show how far a table of models reaches, against the most there may be to read."""

    label: str
    tiers: tuple[tuple[str, str], ...]
    reaches: str
    needed: str


def covers(options: MemoryOptions) -> list[Cover]:
    """Return the tables of models there are."""
    limits = options.thresholds().given(0)
    found = (
        ("Observer's models", options.observer_model, limits.ceiling),
        ("Reflector's models", options.reflector_model, limits.reflect_ceiling),
    )
    return [_cover(label, spec, most) for label, spec, most in found if isinstance(spec, dict)]


def _cover(label: str, spec: dict[str, object], most: int) -> Cover:
    tiers = TokenTiers.of(spec)
    rows = tuple((words.tokens(limit), model) for limit, model in tiers.tiers)
    return Cover(label, rows, words.tokens(tiers.top), words.tokens(most))
