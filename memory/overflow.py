"""Tell when a provider refuses a request because it is longer than its model can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError

STATUSES = frozenset({400, 413})
"""What such a refusal comes with; keys, limits and failures of a server have others."""

# How providers, and the servers people run themselves, word it where no code says it.
_WORDS = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large"
    r"|maximum (context|prompt|input|allowed) (length|size)|max(imum)?_?(model|context)_?len"
    r"|context (window|length|limit|size)|prompt is too (long|large)|input is too long"
    r"|input token count|number of tokens allowed|too many (input )?tokens"
    r"|reduce the length of|prompt contains \d+ tokens|exceeds? the (available|maximum) "
    r"|tokens? .{0,40}\b(exceeds?|must be <=)|request (entity )?too large",
    re.I,
)
_COMPARED = re.compile(r">\s*(\d{3,})")
_NAMED = re.compile(
    r"(?:maximum|max|limit|window|length|size|only|up to|allowed|<=)\D{0,40}?(\d{3,})", re.I
)


class ContextOverflow(Exception):
    """Say that a request stays too long although all that may be left out was left out."""


def is_overflow(error: BaseException) -> bool:
    """Tell whether a failed call, or one it stands for, was refused as too long."""
    return any(_is(cause) for cause in _leaves(error))


def bound_in(error: BaseException) -> int | None:
    """Return how many tokens the model takes in, where the refusal names the number."""
    found: list[int] = []
    for said in (_said(cause).replace(",", "") for cause in _leaves(error) if _is(cause)):
        found += map(int, _COMPARED.findall(said) or _NAMED.findall(said))
    return min(found, default=None)


def _is(error: BaseException) -> bool:
    if isinstance(error, ModelContextWindowExceededError):
        return True
    if not isinstance(error, ModelHTTPError) or error.status_code not in STATUSES:
        return False
    return error.status_code == 413 or _WORDS.search(_said(error)) is not None


def _said(error: BaseException) -> str:
    body = getattr(error, "body", None)
    return f"{error} {json.dumps(body, default=str) if body is not None else ''}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, or each of those that it groups, as a chain of fallbacks does."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
