"""Define the options of memory, each with its default and its rule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Annotated, Any, Literal, LiteralString, NamedTuple, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from .engine.idle import Idle, read_idle
from .engine.thresholds import ThresholdError, Thresholds, resolve
from .extraction import resolve as resolve_extractors
from .tiers import TokenTiers

Phase = Literal["observer", "reflector"]
ModelChoice = str | dict[str, Any]
Json = TypeVar("Json")

_PATTERN = re.compile(r"\*|[a-z]+/(\*|[\w.+-]+)")
_NAMED = re.compile(r"^(\w+) = ")
_OF_PROVIDER = re.compile(r"[a-z]+(_[a-z]+)*_\w+")


_WRONG, _UNKNOWN = "wrong_option", "unknown_option"


def _wrong(said: str, kind: LiteralString = _WRONG) -> PydanticCustomError:
    return PydanticCustomError(kind, "{said}", {"said": said})


def _said(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a reader of a value so that its ValueError is shown without a preamble."""

    def reading(value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            raise _wrong(str(error)) from None

    return reading


def _read_model(value: Any) -> ModelChoice:
    if isinstance(value, Mapping):
        tiers = TokenTiers.of(value).tiers
        return {"up_to": {str(limit): model for limit, model in tiers}}
    if not isinstance(value, str):
        raise ValueError('must be a model\'s name as a string, or {"up_to": {"TOKENS": "MODEL"}}')
    # Whether a plain name can be used is known when it is: others then stand in for it.
    return value.strip()


def _read_buffer(value: Any) -> float | Literal[False]:
    if value is False:
        return False
    if value is True or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise ValueError("must be a finite number, more than 0, or false")
    return value


def _read_previous(value: Any) -> int | Literal[False]:
    if value is False:
        return False
    if value is True or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number of tokens, 0 or more, or false")
    return value


def _read_attachments(value: Any) -> bool | Literal["auto"] | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if value == "auto":
        return "auto"
    if not isinstance(value, list | tuple):
        raise ValueError('must be true, false, "auto" or a list of patterns like "image/*"')
    for pattern in value:
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern.lower()):
            raise ValueError(f'{pattern!r} is no pattern like "image/*" or "application/pdf"')
    return tuple(pattern.lower() for pattern in value)


def _read_settings(value: Any) -> dict[str, Any]:
    from pydantic_ai.settings import ModelSettings

    if not isinstance(value, Mapping):
        raise ValueError("must be an object of model settings")
    known = list(ModelSettings.__annotations__)
    for name in value:
        near = get_close_matches(str(name), known, n=1, cutoff=0.8)
        of_provider = isinstance(name, str) and _OF_PROVIDER.fullmatch(name)
        if name not in known and (near or not of_provider):
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{name}: there is no such model setting; {hint}")
    return _plain_json(dict(value))


def _read_extract(value: Any) -> tuple[str | dict[str, Any], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of extractors' names and specs")
    resolve_extractors(value)
    found = [each if isinstance(each, str) else dict(each) for each in value]
    return tuple(_plain_json(found))


def _plain_json(value: Json) -> Json:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must be plain JSON, with finite numbers only") from None
    return value


# The readers have done what a serializer would check again.
_AS_IT_IS = PlainSerializer(lambda value: value)

BufferOption = Annotated[float | Literal[False], PlainValidator(_said(_read_buffer)), _AS_IT_IS]
PreviousOption = Annotated[int | Literal[False], PlainValidator(_said(_read_previous)), _AS_IT_IS]
IdleOption = Annotated[Idle, PlainValidator(_said(read_idle)), _AS_IT_IS]
AttachmentsOption = Annotated[
    bool | Literal["auto"] | tuple[str, ...], PlainValidator(_said(_read_attachments)), _AS_IT_IS
]
ModelOption = Annotated[ModelChoice, PlainValidator(_said(_read_model)), _AS_IT_IS]
SettingsOption = Annotated[dict[str, Any], PlainValidator(_said(_read_settings)), _AS_IT_IS]
ExtractOption = Annotated[
    tuple[str | dict[str, Any], ...], PlainValidator(_said(_read_extract)), _AS_IT_IS
]


def _only_known(model: type[BaseModel], given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    names = list(model.model_fields)
    for name, value in given.items():
        if name not in names:
            near = get_close_matches(str(name), names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise _wrong(f"{name} = {value!r}: there is no such option; {hint}", _UNKNOWN)
    return given


class _Nested(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        return _only_known(cls, given)


class ContinuationHints(_Nested):
    """Say which hints for going on the Observer writes and the Actor sees."""

    current_task: bool = True
    suggested_response: bool = True

    def __bool__(self) -> bool:
        """Tell whether there are any hints."""
        return self.current_task or self.suggested_response


class Retrieval(_Nested):
    """Say how far the Actor may recall, and what it is told about it besides."""

    scope: Literal["thread", "resource"] = "resource"
    instructions: str = ""


def _read_hints(value: Any) -> Any:
    if isinstance(value, bool):
        return {"current_task": value, "suggested_response": value}
    return _object(value)


def _read_retrieval(value: Any) -> Any:
    if isinstance(value, bool | None):
        return {} if value else None
    return _object(value)


def _object(value: Any) -> Any:
    if not isinstance(value, Mapping | BaseModel):
        raise ValueError("must be true, false or an object")
    return value


class MemoryOptions(_Nested):
    """Hold every option of Observational Memory, validated.

    Shares and absolutes are as ``engine.thresholds.resolve`` reads them, pauses as
    ``engine.idle.read_idle``. Raises pydantic.ValidationError, of which ``problems`` makes
    sentences naming the option, its value and the rule.
    """

    scope: Literal["thread", "resource"] = "thread"
    message_tokens: int = 30_000
    share_token_budget: bool = False
    buffer_tokens: BufferOption = 0.2
    buffer_activation: float = 0.8
    block_after: float = 1.2
    buffer_on_idle: bool = False
    activate_after_idle: IdleOption = False
    activate_on_provider_change: bool = False
    previous_observer_tokens: PreviousOption = 2_000
    max_tokens_per_batch: int = Field(10_000, gt=0)
    parallel_calls: int = Field(4, ge=1, le=64)
    other_conversations_tokens: int = Field(4_000, ge=0)
    observe_on_overflow: bool = True
    temporal_markers: bool = False
    retrieval: Annotated[Retrieval | None, BeforeValidator(_said(_read_retrieval))] = None
    instruction: str = ""
    thread_title: bool = False
    continuation_hints: Annotated[ContinuationHints, BeforeValidator(_said(_read_hints))] = (
        ContinuationHints()
    )
    observe_attachments: AttachmentsOption = ("image/*", "application/pdf")
    observer_prompt: Literal["full", "condensed"] = "full"
    observer_model: ModelOption = ""
    observer_settings: SettingsOption = Field(default_factory=dict)
    observation_tokens: int = 40_000
    reflection_buffer_activation: float = 0.5
    reflection_block_after: float = 1.2
    reflection_activate_after_idle: IdleOption = False
    reflection_activate_on_provider_change: bool = False
    reflection_instruction: str = ""
    reflector_model: ModelOption = ""
    reflector_settings: SettingsOption = Field(default_factory=dict)
    extract: ExtractOption = ()
    context_tokens: Annotated[int, Field(ge=1_000)] | Literal[False] = Field(
        False, description="What the Actor's model takes in. False: as is known of it."
    )
    wait_seconds: float = Field(20, ge=0, description="How long a turn waits at the ceiling.")

    @model_validator(mode="after")
    def _resolvable(self) -> Self:
        if self.buffer_tokens is False and "block_after" in self.model_fields_set:
            raise _wrong(
                f"block_after = {self.block_after!r}: needs buffering, which buffer_tokens = "
                "false turns off; leave it out"
            )
        try:
            found = self.thresholds().given(0)
        except ThresholdError as error:
            raise _wrong(str(error)) from None
        _check_reach("observer_model", self.observer_model, found.ceiling)
        _check_reach("reflector_model", self.reflector_model, found.reflect_ceiling)
        return self

    def thresholds(self) -> Thresholds:
        """Return the plain token counts these options mean."""
        return resolve(
            message_tokens=self.message_tokens,
            buffer_tokens=None if self.buffer_tokens is False else self.buffer_tokens,
            buffer_activation=self.buffer_activation,
            block_after=self.block_after,
            observation_tokens=self.observation_tokens,
            reflection_buffer_activation=self.reflection_buffer_activation,
            reflection_block_after=self.reflection_block_after,
            share_token_budget=self.share_token_budget,
        )


def _check_reach(field: str, choice: ModelChoice, tokens: int) -> None:
    if isinstance(choice, dict) and (top := TokenTiers.of(choice).top) < tokens:
        raise _wrong(
            f"{field} = {choice!r}: its largest tier must be at least {tokens}, the ceiling up "
            f"to which there may be to read, not {top}"
        )


class Fault(NamedTuple):
    """Say what is wrong with options: which option, or none when it is all of them, and why."""

    option: str
    said: str


def faults(error: ValidationError) -> list[Fault]:
    """Return what is wrong with options, each with the option it is best mended at."""
    found = error.errors(include_url=False, include_context=False)
    return [Fault(_option(each), _problem(each)) for each in found]


def problems(error: ValidationError) -> list[str]:
    """Return what is wrong with options as sentences: the option, its value and the rule."""
    return [fault.said for fault in faults(error)]


def _option(error: Any) -> str:
    """Return the option at fault; one that only breaks a rule with others begins the sentence."""
    place = error["loc"] or _NAMED.findall(error["msg"])
    return str(place[0]) if place and place[0] in MemoryOptions.model_fields else ""


def _problem(error: Any) -> str:
    place, said = ".".join(str(step) for step in error["loc"]), error["msg"]
    if error["type"] == _UNKNOWN:
        return f"{place}.{said}" if place else said
    if error["type"] != _WRONG:
        said = re.sub("^Input should ", "must ", said)
    return f"{place} = {error['input']!r}: {said}" if place else said
