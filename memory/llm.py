"""Turn a model's name into a model, and a model's failure into a sentence for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    OutputTokenLimitExceeded,
    RunCancelled,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.models import Model, infer_model

from memory.engine.parsing import BadOutput
from memory.tiers import COMPATIBLE, OFFLINE, offline_mode
from memory.tokens import count

OLLAMA = "ollama"
BASE_URL_VARIABLE = "OM_MODEL_BASE_URL"
LONGEST_SENTENCE = 300

_LONGEST_NAME = 60
_ADDRESSED = re.compile(r"(?P<model>.+?)@(?P<url>https?://\S+)")
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_EXTRA = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_SUGGESTION = re.compile(r"Did you mean '([^']+)'")
_KEY = re.compile(r"\b(?:sk-|pk-|gsk_|xai-|hf_|AIza)[\w-]{12,}")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,39}")
_PASSING_STATUSES = frozenset({408, 425, 429})


class ModelUnavailable(Exception):
    """Say in one sentence why a model cannot be used, and what to do about it."""


def resolve(
    name: str, *, delay: float = 0.0, base_url: str = "", api_key: str | None = None
) -> Model:
    """Return the model that a name like ``openai:gpt-5-mini`` means.

    ``offline`` needs nothing and takes ``delay`` seconds per call; ``offline:fails``,
    ``offline:empty`` and ``offline:slow`` do that, for trials. ``openai-compatible:MODEL``
    and ``ollama:MODEL`` speak to ``base_url``, or to the address after an ``@`` in the name, with
    ``api_key`` if their server wants one. Every other provider takes its key, and its own base
    URL, from the environment variables of its SDK, so that no key is ever sent to another
    server. Raises ModelUnavailable.
    """
    if (mode := offline_mode(name)) is not None:
        from memory.offline.model import OfflineModel

        return OfflineModel(delay, count=count, mode=mode)
    provider, _, model = name.partition(":")
    if not provider or not model.strip():
        raise ModelUnavailable(_malformed(name))
    try:
        if provider == COMPATIBLE:
            return _compatible(model, base_url, api_key)
        if provider == OLLAMA:
            return _ollama(model, base_url, api_key)
        inferred: Model = infer_model(name)
        return inferred
    except ModelUnavailable:
        raise
    except Exception as error:
        # Each provider's package fails in its own way when it is set up; all of them are
        # the same to the person who named the model.
        raise ModelUnavailable(_refusal(name, error)) from error


@lru_cache(maxsize=64)
def shared(
    name: str, *, delay: float = 0.0, base_url: str = "", api_key: str | None = None
) -> Model:
    """Return the model that a name means, made once in a process.

    A model keeps its connections, so callers that ask for it again and again should share it.
    Raises ModelUnavailable, and tries again at the next call.
    """
    return resolve(name, delay=delay, base_url=base_url, api_key=api_key)


class Available(NamedTuple):
    """Hold the first model of several that can be used, and why those before it cannot."""

    name: str
    model: Model
    skipped: tuple[str, ...]


def first_available(names: Iterable[str], resolve: Callable[[str], Model] = shared) -> Available:
    """Return the first of some models that is set up: its package installed, its key at hand.

    The first use of a provider imports its package, which takes seconds: not for a loop. Raises
    ModelUnavailable with every reason when none is.
    """
    skipped: list[str] = []
    for name in names:
        try:
            return Available(name, resolve(name), tuple(skipped))
        except ModelUnavailable as unavailable:
            skipped.append(str(unavailable))
    raise ModelUnavailable(" ".join(skipped) or "No model was named: set OM_MODEL.")


def explain(error: BaseException) -> str:
    """Return one sentence about a failed model call, for the person who was waiting for it.

    It has at most 300 characters and holds nothing a provider wrote: no key, no trace.
    """
    for cause in _causes(error):
        for kind, sentence in _SENTENCES:
            if isinstance(cause, kind):
                return _clipped(sentence(cause), LONGEST_SENTENCE)
    return (
        f"The model call failed unexpectedly ({type(error).__name__}): "
        "the server's log has the details."
    )


def is_transient(error: BaseException) -> bool:
    """Tell whether the same call may succeed later: limits, overload, timeouts, connections.

    A call that somebody stopped, and one that was refused for what it is, is not.
    """
    for cause in _causes(error):
        if isinstance(cause, ModelQuotaExceededError | ModelRequestRejectedError):
            return False
        if isinstance(cause, ModelHTTPError):
            return cause.status_code >= 500 or cause.status_code in _PASSING_STATUSES
        if isinstance(cause, _TRANSIENT):
            return True
        if isinstance(cause, RunCancelled):
            return False
    return False


def is_busy(error: BaseException) -> bool:
    """Tell whether a provider did not take a call: limits, overload, failure, no connection.

    One that it took and gave no answer to in time is another matter.
    """
    causes = list(_causes(error))
    late = any(isinstance(cause, _LATE) for cause in causes)
    return not late and is_transient(error) and any(isinstance(cause, _BUSY) for cause in causes)


_BUSY = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)
_LATE = (ModelTimeoutError, ModelRequestTimeout, TimeoutError)
_TRANSIENT = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
    ModelRequestTimeout,
    TimeoutError,
    ConnectionError,
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything it was raised from, nearest first."""
    queue, seen = [error], set[int]()
    while queue:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            queue.extend(current.exceptions)
        behind = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
        if behind is not None:
            queue.append(behind)


def spelled(name: str) -> tuple[str, str]:
    """Return the provider and the model that a name means, without its address.

    A name without a provider, like ``offline``, is that of a model.
    """
    provider, colon, model = name.partition(":")
    return (provider, _address(model, "").model) if colon else ("", name)


class _Address(NamedTuple):
    model: str
    url: str


def _address(model: str, base_url: str) -> _Address:
    if match := _ADDRESSED.fullmatch(model):
        return _Address(match["model"], match["url"])
    return _Address(model, base_url)


def _compatible(model: str, base_url: str, api_key: str | None) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    address = _address(model, base_url)
    if not address.url:
        raise ModelUnavailable(
            f"Model {_named(f'{COMPATIBLE}:{model}')} has no address: set {BASE_URL_VARIABLE}, "
            f"or write {COMPATIBLE}:MODEL@http://HOST:PORT/v1."
        )
    # Chat templates of many local models refuse a second system message.
    profile = OpenAIModelProfile(openai_chat_supports_multiple_system_messages=False)
    provider = OpenAICompatibleProvider(
        COMPATIBLE, base_url=address.url, api_key=api_key, profile=profile
    )
    return OpenAIChatModel(address.model, provider=provider)


def _ollama(model: str, base_url: str, api_key: str | None) -> Model:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    address = _address(model, base_url)
    provider = OllamaProvider(base_url=address.url or None, api_key=api_key)
    return OllamaModel(address.model, provider=provider)


def _malformed(name: str) -> str:
    return (
        f"{_named(name)} is not a model's name: write PROVIDER:MODEL, like openai:gpt-5-mini "
        f"or anthropic:claude-sonnet-4-6, or {OFFLINE} to go without one."
    )


def _refusal(name: str, error: Exception) -> str:
    text, shown = str(error), _named(name)
    if isinstance(error, ImportError):
        extra = _EXTRA.search(text)
        package = f'run pip install "pydantic-ai-slim[{extra[1]}]"' if extra else "install it"
        return f"Model {shown} needs a package that is not installed: {package} and start again."
    if variable := _VARIABLE.search(text):
        return (
            f"Model {shown} is not set up: set {variable[1]} in the server's environment "
            "and start it again."
        )
    if text.startswith("Unknown model"):
        guess = _SUGGESTION.search(text)
        hint = f"did you mean {guess[1]}?" if guess else "check the part before the colon."
        return f"Nothing is known of a provider for model {shown}: {hint}"
    return (
        f"Model {shown} cannot be set up ({type(error).__name__}): "
        "check its provider's settings in the server's environment."
    )


def _named(name: str) -> str:
    match = _ADDRESSED.fullmatch(name)
    # An address may carry a password, and a key may have been put where a name belongs.
    shown = _KEY.sub("…", match["model"] if match else name)
    return f"“{_clipped(shown, _LONGEST_NAME)}”"


def _clipped(text: str, limit: int) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _model(error: BaseException) -> str:
    return f"model {_named(error.model_name)}" if isinstance(error, ModelAPIError) else "the model"


def _status(error: BaseException) -> str:
    """Return what identifies a refusal, such as " (HTTP 429, rate_limit_exceeded)"."""
    facts = [f"HTTP {error.status_code}"] if isinstance(error, ModelHTTPError) else []
    code = getattr(error, "provider_error_code", None) or ""
    if _CODE.fullmatch(code):
        facts.append(code)
    return f" ({', '.join(facts)})" if facts else ""


def _wait(error: BaseException) -> str:
    seconds = getattr(error, "retry_after", None)
    return f"in {seconds:.0f} s" if seconds else "in a minute"


def _unreachable(error: BaseException) -> str:
    if isinstance(error, ModelConnectionError) and error.phase == "read":
        return f"The connection to {_model(error)} broke off during its answer: try again."
    return (
        f"Nothing answers at the address of {_model(error)}: check that its server is running "
        "and that its base URL is right."
    )


def _set_up(error: BaseException) -> str:
    if variable := _VARIABLE.search(str(error)):
        return f"The model is not set up: set {variable[1]} in the server's environment."
    return "The model was asked for something it cannot do: the server's log has the details."


# The first kind that fits explains an error, so the special ones stand before the general.
_SENTENCES: tuple[tuple[type[BaseException], Callable[[BaseException], str]], ...] = (
    (ModelUnavailable, str),
    (BadOutput, str),
    (
        ModelAuthenticationError,
        lambda e: (
            f"The provider refused the key for {_model(e)}{_status(e)}: check the key in "
            "the server's environment, and that it may use this model."
        ),
    ),
    (
        ModelNotFoundError,
        lambda e: f"The provider does not know {_model(e)}{_status(e)}: check the model's name.",
    ),
    (
        ModelContextWindowExceededError,
        lambda e: (
            f"The request is longer than {_model(e)} can read{_status(e)}: choose a model "
            "with a larger window, or lower the thresholds."
        ),
    ),
    (
        ModelQuotaExceededError,
        lambda e: (
            f"The account's quota for {_model(e)} is used up{_status(e)}: add credit, "
            "or choose another model."
        ),
    ),
    (
        ModelRateLimitError,
        lambda e: (
            f"The provider limits how often {_model(e)} may be asked{_status(e)}: "
            f"try again {_wait(e)}."
        ),
    ),
    (
        ModelUnavailableError,
        lambda e: (
            f"The provider of {_model(e)} is overloaded or down{_status(e)}: try again {_wait(e)}."
        ),
    ),
    (
        ModelServerError,
        lambda e: f"The provider of {_model(e)} failed{_status(e)}: try again {_wait(e)}.",
    ),
    (
        ModelRequestRejectedError,
        lambda e: (
            f"The provider refused the request to {_model(e)} as not valid{_status(e)}: "
            "the server's log has its reason."
        ),
    ),
    (
        ModelTimeoutError,
        lambda e: f"Waiting for {_model(e)} took too long: try again, or choose a faster model.",
    ),
    (
        ModelRequestTimeout,
        lambda e: f"Waiting for {_model(e)} took too long: try again, or choose a faster model.",
    ),
    (ModelConnectionError, _unreachable),
    (
        ModelAPIError,
        lambda e: f"The call of {_model(e)} failed{_status(e)}: the server's log has the reason.",
    ),
    (
        ContentFilterError,
        lambda e: (
            "The provider's content filter stopped the answer: say it differently, "
            "or choose another model."
        ),
    ),
    (
        OutputTokenLimitExceeded,
        lambda e: (
            "The model reached its output limit before it had answered: raise max_tokens, "
            "or ask for less at once."
        ),
    ),
    (
        UsageLimitExceeded,
        lambda e: (
            "The answer was stopped at the limit set on its requests, tool calls, tokens or cost."
        ),
    ),
    (TimeoutError, lambda e: "Waiting for the model took too long: try again."),
    (RunCancelled, lambda e: "The answer was stopped."),
    (ConnectionError, _unreachable),
    (UserError, _set_up),
    (
        UnexpectedModelBehavior,
        lambda e: "The model's answer could not be used: try again, or choose another model.",
    ),
)
