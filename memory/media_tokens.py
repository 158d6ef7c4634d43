"""Count what a picture or a file costs, by the rules that providers publish for theirs.

Nothing is decoded, fetched or uploaded: sizes come from headers that were read when the bytes
were stored. What is unknown is estimated from the number of bytes, and without bytes from a
middling picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

LOW, MEDIUM, HIGH, ULTRA = "low", "medium", "high", "ultra_high"
KIB = 1024

_GEMINI_3 = {LOW: 280, MEDIUM: 560, HIGH: 1_120, ULTRA: 2_240}
_GEMINI_TILE, _GEMINI_SIDE = 258, 768

_CLAUDE_SIDE, _CLAUDE_PIXELS = 1_568, 750
_CLAUDE_BY_BYTES = ((512 * KIB, 341), (2_048 * KIB, 1_366), (4_096 * KIB, 2_048))
_CLAUDE_LARGEST, _CLAUDE_UNKNOWN = 2_731, 1_600

_GPT_FIT, _GPT_SHORT, _GPT_TILE = 2_048, 768, 512
_GPT_BY_BYTES = ((512 * KIB, 1), (2_048 * KIB, 4), (4_096 * KIB, 6))
_GPT_LARGEST, _GPT_UNKNOWN = 8, 4
_GPT_AUTO_SIDE, _GPT_AUTO_BYTES = 768, KIB * KIB

#: Of each family of OpenAI's models: a picture's base price, and that of a tile.
_GPT_PRICES = (
    (re.compile(r"computer-use"), 65, 129),
    (re.compile(r"^gpt-4o-mini"), 2_833, 5_667),
    (re.compile(r"^gpt-5"), 70, 140),
    (re.compile(r"^o[13](?![0-9])"), 75, 150),
    (re.compile(r""), 85, 170),
)

_PDF_PRICES = {"google": (258, 20), "anthropic": (1_500, 3), "openai": (500, 4)}
_OTHER_BYTES = 4

_BY_NAME = (
    ("google", re.compile(r"gemini|gemma")),
    ("anthropic", re.compile(r"claude")),
)
_BY_PREFIX = (("google", "google"), ("gemini", "google"), ("anthropic", "anthropic"))


@dataclass(frozen=True, slots=True)
class Shape:
    """Hold what is known of a picture or file without looking at it; None is unknown.

    ``size`` is in bytes, ``detail`` what the sender asked the provider for.
    """

    media_type: str
    size: int | None = None
    width: int | None = None
    height: int | None = None
    detail: str = ""

    @property
    def is_image(self) -> bool:
        """Tell whether this is a picture."""
        return self.media_type.lower().startswith("image/")


def provider_of(model: str) -> tuple[str, str]:
    """Return whose rules count for a model, and its name without the provider.

    The provider is google, anthropic or openai; models of anybody else, and an unknown one,
    are counted by OpenAI's rules.
    """
    prefix, colon, rest = model.lower().partition("@")[0].rpartition(":")
    name = rest.rsplit("/", 1)[-1]
    for provider, pattern in _BY_NAME:
        if pattern.search(name):
            return provider, name
    found = [provider for start, provider in _BY_PREFIX if colon and prefix.startswith(start)]
    return (found or ["openai"])[0], name


def media_tokens(shape: Shape, model: str = "") -> int:
    """Return what a picture or a file with known bytes costs; ``model`` may be empty."""
    provider, name = provider_of(model)
    if shape.is_image:
        return _IMAGES[provider](shape, name)
    size = shape.size or 0
    if shape.media_type.lower() == "application/pdf":
        least, per_token = _PDF_PRICES[provider]
        return max(least, ceil(size / per_token))
    return max(1, ceil(size / _OTHER_BYTES))


def detail_of(metadata: Mapping[str, object] | None) -> str:
    """Return the detail a sender asked for, as OpenAI or Google spell it in lower case."""
    given = (metadata or {}).get("detail") or (metadata or {}).get("media_resolution") or ""
    level = given.get("level", "") if isinstance(given, Mapping) else given
    return str(level).lower().removeprefix("media_resolution_")


def _google(shape: Shape, name: str) -> int:
    if name.startswith("gemini-3"):
        return _GEMINI_3.get(shape.detail, _GEMINI_3[HIGH])
    if not (shape.width and shape.height):
        return _GEMINI_TILE
    tiles = ceil(shape.width / _GEMINI_SIDE) * ceil(shape.height / _GEMINI_SIDE)
    return _GEMINI_TILE * tiles


def _anthropic(shape: Shape, name: str) -> int:
    if shape.width and shape.height:
        width, height = _fitted(shape.width, shape.height, _CLAUDE_SIDE)
        return max(1, ceil(width * height / _CLAUDE_PIXELS))
    if shape.size is None:
        return _CLAUDE_UNKNOWN
    return _step(shape.size, _CLAUDE_BY_BYTES, _CLAUDE_LARGEST)


def _openai(shape: Shape, name: str) -> int:
    base, tile = next((b, t) for pattern, b, t in _GPT_PRICES if pattern.search(name))
    return base if _detail(shape) == LOW else base + tile * _tiles(shape, name)


def _detail(shape: Shape) -> str:
    if shape.detail in (LOW, HIGH):
        return shape.detail
    side = max(shape.width or 0, shape.height or 0)
    if not side and shape.size is None:
        return HIGH
    large = side > _GPT_AUTO_SIDE or (shape.size or 0) > _GPT_AUTO_BYTES
    return HIGH if large else LOW


def _tiles(shape: Shape, name: str) -> int:
    if shape.width and shape.height:
        width, height = _fitted(shape.width, shape.height, _GPT_FIT)
        scale = min(1.0, _GPT_SHORT / min(width, height))
        return ceil(width * scale / _GPT_TILE) * ceil(height * scale / _GPT_TILE)
    if shape.size is None:
        return 1 if name.startswith("gpt-4o-mini") else _GPT_UNKNOWN
    return _step(shape.size, _GPT_BY_BYTES, _GPT_LARGEST)


def _fitted(width: float, height: float, side: int) -> tuple[float, float]:
    scale = min(1.0, side / max(width, height))
    return width * scale, height * scale


def _step(size: int, steps: Sequence[tuple[int, int]], beyond: int) -> int:
    return next((value for limit, value in steps if size <= limit), beyond)


_IMAGES = {"google": _google, "anthropic": _anthropic, "openai": _openai}
