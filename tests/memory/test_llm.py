import asyncio
import itertools
import subprocess
import sys

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    OutputTokenLimitExceeded,
    RunCancelled,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)

from memory.engine.parsing import EmptyOutput
from memory.llm import (
    LONGEST_SENTENCE,
    OFFLINE,
    ModelUnavailable,
    explain,
    is_transient,
    resolve,
    shared,
)

KEY = "sk-proj-0123456789abcdefABCDEF"


def http(status, category=None, **facts):
    return ModelHTTPError.for_category(category, status_code=status, model_name="gpt-9", **facts)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for provider in ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "OPENROUTER", "OLLAMA"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
        monkeypatch.delenv(f"{provider}_BASE_URL", raising=False)


def refused(name, **settings):
    with pytest.raises(ModelUnavailable) as raised:
        resolve(name, **settings)
    sentence = str(raised.value)
    assert sentence.endswith((".", "?"))
    assert len(sentence) <= LONGEST_SENTENCE
    return sentence


def test_the_offline_model_needs_nothing():
    assert resolve(OFFLINE).model_name == OFFLINE


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("google:gemini-3.8-flash", "GOOGLE_API_KEY"),
        ("openrouter:a/b", "OPENROUTER_API_KEY"),
        ("ollama:qwen3", "OLLAMA_BASE_URL"),
        ("openai-compatible:qwen3", "OM_MODEL_BASE_URL"),
    ],
)
def test_what_is_missing_is_named(name, variable):
    sentence = refused(name)
    assert variable in sentence
    assert name in sentence


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai:gpt-5-mini", "OpenAIResponsesModel"),
        ("openai-chat:gpt-5-mini", "OpenAIChatModel"),
        ("anthropic:claude-sonnet-4-6", "AnthropicModel"),
        ("google:gemini-3.8-flash", "GoogleModel"),
        ("openrouter:a/b", "OpenRouterModel"),
    ],
)
def test_a_provider_with_a_key_is_resolved(name, model, monkeypatch):
    for provider in ("OPENAI", "ANTHROPIC", "GOOGLE", "OPENROUTER"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    resolved = resolve(name)
    assert type(resolved).__name__ == model
    assert resolved.model_name == name.partition(":")[2]


@pytest.mark.parametrize("name", ["", "gpt-5-mini", "openai:", "openai: ", ":gpt", "OFFLINE"])
def test_what_is_not_a_name_is_answered_with_the_form_of_one(name):
    assert "PROVIDER:MODEL" in refused(name)


def test_an_unknown_provider_is_called_unknown():
    assert "acme:rocket" in refused("acme:rocket")


def test_a_misspelt_provider_is_answered_with_the_name_it_resembles():
    assert "did you mean anthropic:" in refused("antropic:claude-sonnet-4-6")


def test_a_missing_package_is_answered_with_the_command_that_installs_it():
    assert 'pip install "pydantic-ai-slim[groq]"' in refused("groq:llama")


def test_a_key_given_as_a_name_is_not_repeated():
    assert KEY not in refused(KEY)
    assert KEY not in refused(f"acme:{KEY}")


def test_a_name_with_control_characters_and_without_end_stays_one_short_line():
    sentence = refused("x\x00\n\x1b[31m" * 500)
    assert sentence.isprintable()


@pytest.mark.parametrize(
    ("name", "base_url"),
    [
        ("openai-compatible:qwen3@http://127.0.0.1:8080/v1", ""),
        ("openai-compatible:qwen3@http://127.0.0.1:8080/v1", "http://127.0.0.1:9/v1"),
        ("openai-compatible:qwen3", "http://127.0.0.1:8080/v1"),
        ("ollama:qwen3", "http://127.0.0.1:8080/v1"),
        ("ollama:qwen3@http://127.0.0.1:8080/v1", ""),
    ],
)
def test_a_compatible_server_is_spoken_to_at_its_address(name, base_url):
    model = resolve(name, base_url=base_url)
    assert model.model_name == "qwen3"
    assert model.base_url == "http://127.0.0.1:8080/v1/"


def test_a_models_name_may_hold_an_at_sign():
    model = resolve("openai-compatible:qwen3@q4@http://127.0.0.1:8080/v1")
    assert model.model_name == "qwen3@q4"


def test_openais_key_is_never_sent_to_a_compatible_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = resolve("openai-compatible:qwen3", base_url="http://127.0.0.1:8080/v1")
    assert model.client.api_key != KEY


def test_a_base_url_moves_no_other_provider(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = resolve("openai:gpt-5-mini", base_url="http://127.0.0.1:8080/v1")
    assert "127.0.0.1" not in model.base_url


def test_a_compatible_servers_own_key_is_sent():
    model = resolve("openai-compatible:q", base_url="http://127.0.0.1:8080/v1", api_key="mine")
    assert model.client.api_key == "mine"


def test_a_shared_model_is_made_once(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert shared("openai:gpt-5-nano") is shared("openai:gpt-5-nano")
    assert shared("openai:gpt-5-nano") is not shared("openai:gpt-5-mini")


def test_a_shared_model_that_was_missing_is_tried_again(monkeypatch):
    with pytest.raises(ModelUnavailable):
        shared("openai:gpt-5-later")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert shared("openai:gpt-5-later").model_name == "gpt-5-later"


def test_importing_loads_no_providers_package():
    program = (
        "import sys, memory.llm, memory.observer, memory.reflector; "
        "assert not {'openai', 'anthropic', 'google.genai', 'groq'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def within(*errors):
    """Return the first error raised from the second, and so on."""
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


TIMED_OUT = ModelTimeoutError("gpt-9", "")

FAILURES = [
    (http(401, ModelAuthenticationError), "refused the key", False),
    (http(403, ModelAuthenticationError), "refused the key", False),
    (http(404, ModelNotFoundError), "does not know model “gpt-9”", False),
    (http(400, ModelRequestRejectedError), "not valid (HTTP 400)", False),
    (http(400, ModelContextWindowExceededError), "longer than model “gpt-9” can read", False),
    (http(402, ModelQuotaExceededError), "quota", False),
    (http(429, ModelQuotaExceededError), "quota", False),
    (http(429, ModelRateLimitError, retry_after=7), "again in 7 s", True),
    (http(500, ModelServerError), "failed (HTTP 500)", True),
    (http(529, ModelOverloadedError), "overloaded or down (HTTP 529)", True),
    (http(408), "failed (HTTP 408)", True),
    (http(418), "failed (HTTP 418)", False),
    (ModelConnectionError("gpt-9", "", phase="connect"), "Nothing answers", True),
    (ModelConnectionError("gpt-9", "", phase="read"), "broke off", True),
    (TIMED_OUT, "took too long", True),
    (ModelRequestTimeout("gpt-9", 3), "took too long", True),
    (ModelAPIError("gpt-9", "odd"), "failed", False),
    (TimeoutError(), "took too long", True),
    (ConnectionRefusedError(), "Nothing answers", True),
    (ContentFilterError("no"), "content filter", False),
    (OutputTokenLimitExceeded("long"), "output limit", False),
    (UsageLimitExceeded("tokens"), "stopped at the limit", False),
    (UnexpectedModelBehavior("odd"), "could not be used", False),
    (RunCancelled("stop"), "was stopped", False),
    (UserError("Set the `OPENAI_API_KEY` environment variable"), "set OPENAI_API_KEY", False),
    (UserError("odd"), "server's log", False),
    (ModelUnavailable("Buy a model."), "Buy a model.", False),
    (EmptyOutput("is empty", ""), "The reply is empty", False),
    (KeyError("odd"), "unexpectedly (KeyError)", False),
    (asyncio.CancelledError(), "CancelledError", False),
    (within(RuntimeError("wrapped"), ValueError(), TIMED_OUT), "took too long", True),
    (FallbackExceptionGroup("all", [http(500, ModelServerError), KeyError()]), "HTTP 500", True),
]


@pytest.mark.parametrize(
    ("error", "says", "transient"), FAILURES, ids=lambda value: repr(value)[:40]
)
def test_every_failure_is_one_sentence_and_passing_or_not(error, says, transient):
    sentence = explain(error)
    assert says in sentence
    assert sentence.endswith(".")
    assert len(sentence) <= LONGEST_SENTENCE
    assert is_transient(error) is transient


@pytest.mark.parametrize(
    "category",
    [ModelAuthenticationError, ModelRequestRejectedError, ModelServerError, None],
)
def test_nothing_that_a_provider_wrote_is_repeated(category):
    error = http(
        400,
        category,
        body={"error": {"message": f"Incorrect API key provided: {KEY}"}},
        headers={"x-request-key": KEY},
        provider_error_code=f"bad key {KEY}",
        hint=KEY,
    )
    assert KEY not in explain(error)


def test_a_models_endless_name_leaves_the_sentence_short():
    error = ModelServerError("m" * 5_000, "odd")
    assert len(explain(error)) <= LONGEST_SENTENCE
    assert explain(error).endswith(".")


def test_a_failure_that_is_its_own_cause_is_explained():
    error = RuntimeError("loop")
    error.__context__ = within(ValueError(), error)
    assert "RuntimeError" in explain(error)
    assert not is_transient(error)
