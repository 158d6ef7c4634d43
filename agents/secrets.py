"""Mask what looks like a secret before a request or a reply of a model is shown or copied whole.

Only what has the shape of a key is found: a password in a sentence is not. The first characters
stay, so that one can tell which key it was. The logs hide the same shapes, whole.
"""

from __future__ import annotations

import re
from typing import Any

SHOWN = 6

#: The shapes of keys: of model providers, of clouds and forges, and of this server's own tokens.
SHAPES = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----(?:(?!-----).)*-----END[ ][A-Z ]{0,40}KEY-----
    | \b(?:sk|pk|gsk|xai|hf|ghp|pylf)[-_][\w-]{16,}           # several model providers
    | \bom_[\w-]{40,}                                         # this server's own
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                            # access keys of a cloud
    | \b(?:gh[ousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,}|glpat-[\w-]{20,})
    | \bAIza[\w-]{30,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}               # signed tokens
    """,
    re.VERBOSE | re.DOTALL,
)
#: A value behind a name that says it is secret; only the value is masked.
_NAMED = re.compile(
    r"(?P<name>\b(?:authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic)\s{1,4}"
    r"|(?:[a-z0-9]{1,20}[_-]){0,4}(?:api[_-]?key|secret|passwd|password|access[_-]?token)"
    r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?))(?P<value>[^\s\"',;<>]{8,})",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"(?P<name>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:)(?P<value>[^\s/@]{3,})(?=@)"
)


def masked_text(text: str) -> str:
    """Return a text with what looks like a secret masked."""
    text = SHAPES.sub(lambda found: _mask(found[0]), text)
    for pattern in (_NAMED, _LOGIN):
        text = pattern.sub(lambda found: found["name"] + _masked_value(found["value"]), text)
    return text


def masked(content: Any) -> Any:
    """Return JSON with the secrets in all of its strings masked; names of fields stay."""
    if isinstance(content, str):
        return masked_text(content)
    if isinstance(content, list):
        return [masked(each) for each in content]
    if isinstance(content, dict):
        return {name: masked(each) for name, each in content.items()}
    return content


def _masked_value(value: str) -> str:
    return value if MASKED in value else _mask(value, shown=0)


MASKED = "[masked]"


def _mask(secret: str, shown: int = SHOWN) -> str:
    return f"{secret[:shown]}…{MASKED}"
