"""Which models count as another than the one that answered last."""

from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from memory.services.early import early_of
from memory.services.look import look
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def answered(model, provider):
    return ModelResponse(
        parts=[TextPart("Yes.")], model_name=model, provider_name=provider, timestamp=play.AT
    )


@pytest.mark.parametrize(
    ("last", "provider", "now", "another"),
    [
        ("gpt-5", "openai", "openai:gpt-5", False),
        ("gpt-5-2026-01-01", "openai", "openai:gpt-5", False),
        ("gpt-5", "openai", "openai-responses:gpt-5", False),
        ("gpt-5", "openai.responses", "openai:gpt-5", False),
        ("gpt-5", "openai", "anthropic:gpt-5", True),
        ("gpt-5", "openai", "openai:o3", True),
        ("gpt-5", "openai", "gpt-5", False),
        ("gpt-5", "openai", "o3", True),
        ("gpt-5", None, "anthropic:gpt-5", False),
        ("gpt-5", None, "anthropic:claude", True),
        (None, "openai", "anthropic:claude", False),
        ("gpt-5", "openai", "", False),
        ("llama3:8b", "ollama", "ollama:llama3:8b", False),
        ("llama3:8b", "ollama", "ollama:llama3:70b", True),
        ("qwen3", "openai-compatible", "openai-compatible:qwen3@http://h:8000/v1", False),
        ("qwen3", "openai-compatible", "openai-compatible:gemma@http://h:8000/v1", True),
        ("lab/r1", "openrouter", "openrouter:lab/r1:free", False),
        ("lab/r1:free", "openrouter", "openrouter:lab/r1:free", False),
        ("lab/r1:free", "openrouter", "openrouter:lab/r2:free", True),
        ("/models/qwen3-q4.gguf", "openai-compatible", "openai-compatible:qwen3", False),
    ],
)
def test_another_provider_or_model_is_one_as_far_as_both_are_known(
    thread, profile, last, provider, now, another
):
    profile.memory_options = {"activate_on_provider_change": True}
    profile.save()
    play.say(thread, play.question(), answered(last, provider))

    early = early_of(replace(look(thread.pk), actor_model=now), play.AT)

    assert bool(early.observation) is another
    assert early.reflection == ""
