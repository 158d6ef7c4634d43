"""Describe how one record remembers: defaults, the agent's options, the record's overrides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, Self

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from .engine.thresholds import Thresholds, resolve

logger = logging.getLogger(__name__)


class MemoryOptions(BaseModel):
    """Hold every option of Observational Memory, validated.

    Shares and absolutes are as ``engine.thresholds.resolve`` reads them. Raises
    pydantic.ValidationError naming the option, its value and the rule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    message_tokens: int = 30_000
    buffer_tokens: float | Literal[False] = 0.2
    buffer_activation: float = 0.8
    block_after: float = 1.2
    observation_tokens: int = 40_000
    reflection_buffer_activation: float = 0.5
    reflection_block_after: float = 1.2
    previous_observer_tokens: int = Field(2_000, ge=0)
    wait_seconds: float = Field(20, ge=0, description="How long a turn waits at the ceiling.")
    thread_title: bool = False
    instruction: str = ""
    observer_model: str = ""
    reflector_model: str = ""

    @field_validator("buffer_tokens", mode="before")
    @classmethod
    def _number_or_false(cls, value: object) -> object:
        # True would be read as one token, and 0 as false, since they are equal.
        if value is True or (value == 0 and value is not False):
            raise ValueError("must be more than 0, or false")
        return value

    @model_validator(mode="after")
    def _resolvable(self) -> Self:
        self.thresholds()
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
        )


def merged(of_agent: Mapping[str, Any], overrides: Mapping[str, Any]) -> MemoryOptions:
    """Return the options in force: defaults, under the agent's, under the record's."""
    return MemoryOptions.model_validate({**of_agent, **overrides})


def effective(agent: str, overrides: Mapping[str, Any]) -> MemoryOptions:
    """Return the options in force for a record of an agent's thread.

    Options that are not valid, as after a change by hand, must not fail anybody's turn: the
    defaults hold until they are mended.
    """
    try:
        return merged(_options_of_agent()(agent), overrides)
    except ValidationError as error:
        logger.error("The memory options of agent %s are not in force: %s", agent, error)
        return MemoryOptions()


@lru_cache
def _options_of_agent() -> Callable[[str], Mapping[str, Any]]:
    found: Callable[[str], Mapping[str, Any]] = import_string(settings.MEMORY_OPTIONS_OF_AGENT)
    return found
