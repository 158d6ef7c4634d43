import asyncio

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from agents.studio.settings.probe import covers, models_of, try_all, try_out
from memory.config import MemoryOptions
from memory.llm import ModelUnavailable

TIERS = {"up_to": {"8000": "openai:gpt-5-nano", "90000": "openai:gpt-5-mini"}}


def answering(text):
    return lambda name: FunctionModel(
        lambda messages, info: ModelResponse(parts=[TextPart(text)]), model_name=name
    )


def test_a_model_that_answers_says_how_fast_and_for_how_much():
    tried = asyncio.run(try_out("offline", resolve=answering("ready")))

    assert (tried.well, tried.said, tried.cost) == (True, "ready", "$0")
    assert tried.took.endswith(" s")
    assert " in, " in tried.tokens


def test_a_price_nobody_knows_is_said_to_be_unknown():
    assert asyncio.run(try_out("fake", resolve=answering("ready"))).cost == "price unknown"


def test_a_model_that_fails_says_why_and_costs_the_others_nothing():
    def resolve(name):
        if name == "missing":
            raise ModelUnavailable("Set OPENAI_API_KEY.")
        return answering("ready")(name)

    missing, fine = asyncio.run(try_all(["missing", "fine"], resolve=resolve))

    assert (missing.well, missing.said) == (False, "Set OPENAI_API_KEY.")
    assert fine.well


def test_a_model_that_never_answers_is_not_waited_for():
    async def never(messages, info):
        await asyncio.sleep(30)

    tried = asyncio.run(try_out("slow", resolve=lambda name: FunctionModel(never), seconds=0.05))

    assert (tried.well, tried.said) == (False, "No answer within 0 seconds.")


def test_all_tiers_are_tried_or_the_model_that_would_be_used():
    tiered = MemoryOptions(observer_model=TIERS)

    assert models_of(tiered, "observer", "offline") == ["openai:gpt-5-nano", "openai:gpt-5-mini"]
    assert models_of(tiered, "reflector", "offline") == ["openai:gpt-5-nano"]
    assert models_of(MemoryOptions(reflector_model="a:b"), "reflector", "c:d") == ["a:b"]


def test_a_table_says_how_far_it_reaches():
    (cover,) = covers(MemoryOptions(observer_model=TIERS))

    assert (cover.reaches, cover.needed) == ("90k", "36k")
    assert cover.tiers == (("8k", "openai:gpt-5-nano"), ("90k", "openai:gpt-5-mini"))
