"""Write the value of an option as a person types it, and read it back.

What is read is only made plain: whether it is allowed is for ``memory.options`` to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from memory.tiers import UP_TO, TokenTiers

Value = Any

_FACTORS = {"k": Decimal(1000), "%": Decimal("0.01"), "": Decimal(1)}
_NUMBER = re.compile(r"(-?(?:\d+\.?\d*|\.\d+))\s*(k|%)?", re.I)
_TIER = re.compile(r"(?:up to\s+)?([\d.,]+k?)\s*(?:tokens)?\s*[:=]?\s+(\S.*)", re.I)
_NEVER = frozenset({"off", "never", "none", "no", "false"})
_ALWAYS = frozenset({"on", "all", "yes", "true"})


class BadText(ValueError):
    """Say in one sentence why a text is no value."""


@dataclass(frozen=True)
class Text:
    """Turn values of one kind into text and back; ``read`` raises BadText."""

    show: Callable[[Value], str]
    read: Callable[[str], Value]


def number(text: str) -> int | float:
    """Read a number as people write it: 30000, 30,000, 30k, 20%, 0.2. Raises BadText."""
    plain = text.strip().replace(",", "").replace("_", "").replace(" ", "")
    found = _NUMBER.fullmatch(plain)
    if found is None:
        raise BadText(f"“{text.strip()}” is not a number.")
    value = Decimal(found[1]) * _FACTORS[(found[2] or "").lower()]
    return int(value) if value == value.to_integral_value() else float(value)


def shown_number(value: Value) -> str:
    """Write a number, or that there is none."""
    if value is False:
        return "off"
    return str(int(value)) if float(value).is_integer() else str(value)


def _number_or_off(text: str) -> int | float | bool:
    return False if text.strip().lower() in _NEVER else number(text)


def _read_flag(text: str) -> bool:
    plain = text.strip().lower()
    if plain not in _NEVER | _ALWAYS:
        raise BadText(f"“{text.strip()}” is neither on nor off.")
    return plain in _ALWAYS


def _show_pause(value: Value) -> str:
    if value is False:
        return "never"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_show_pause(each)}" for name, each in value.items())
    return value if isinstance(value, str) else f"{shown_number(value)} s"


def _read_pause(text: str) -> Value:
    lines = [line for line in text.splitlines() if line.strip()]
    if any(":" in line for line in lines):
        pairs = (line.partition(":") for line in lines)
        return {name.strip(): _one_pause(each) for name, _, each in pairs}
    return _one_pause(text)


def _one_pause(text: str) -> Value:
    plain = text.strip()
    if plain.lower() in _NEVER:
        return False
    return "auto" if plain.lower() == "auto" else plain


HINTS = {
    "both": (True, True),
    "task": (True, False),
    "response": (False, True),
    "off": (False,) * 2,
}


def _show_hints(value: Value) -> str:
    found = (value["current_task"], value["suggested_response"])
    return next(name for name, each in HINTS.items() if each == found)


def _read_hints(text: str) -> Value:
    if text not in HINTS:
        raise BadText(f"“{text}” is none of {', '.join(HINTS)}.")
    return dict(zip(("current_task", "suggested_response"), HINTS[text], strict=True))


def _show_patterns(value: Value) -> str:
    if isinstance(value, bool):
        return "all" if value else "none"
    return value if isinstance(value, str) else ", ".join(value)


def _read_patterns(text: str) -> Value:
    plain = text.strip().lower()
    if plain in _NEVER | _ALWAYS:
        return plain in _ALWAYS
    return plain if plain == "auto" else [each.strip() for each in plain.split(",")]


def _show_model(value: Value) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(f"{limit} {model}" for limit, model in TokenTiers.of(value).tiers)


def _read_model(text: str) -> Value:
    """Read a model's name, or a table: on each line a number of tokens and a name."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 and not any(_TIER.fullmatch(line) for line in lines):
        return text.strip()
    return {UP_TO: dict(map(_read_tier, lines))}


def _read_tier(line: str) -> tuple[str, str]:
    found = _TIER.fullmatch(line)
    if found is None:
        raise BadText(
            f"“{line}” is no tier: write a number of tokens and a model, like 8000 offline."
        )
    return str(number(found[1])), found[2].strip()


def _show_json(value: Value) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


def _read_json(empty: Callable[[], Value]) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        if not text.strip():
            return empty()
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadText(f"This is not JSON: {error}.") from None

    return read


def _show_retrieval(value: Value) -> str:
    """Write where the Actor may look, and below it what it is told about that."""
    if not value:
        return "off"
    return f"{value['scope']}\n{value['instructions']}".strip()


def _read_retrieval(text: str) -> Value:
    where, _, told = text.strip().partition("\n")
    if where.strip().lower() in _NEVER:
        return False
    return {"scope": where.strip(), "instructions": told.strip()}


NUMBER = Text(shown_number, number)
NUMBER_OR_OFF = Text(shown_number, _number_or_off)
FLAG = Text(lambda value: "on" if value else "off", _read_flag)
PLAIN = Text(str, lambda text: text.strip())
PAUSE = Text(_show_pause, _read_pause)
HINTING = Text(_show_hints, _read_hints)
PATTERNS = Text(_show_patterns, _read_patterns)
MODEL = Text(_show_model, _read_model)
OBJECT = Text(_show_json, _read_json(dict))
LIST = Text(_show_json, _read_json(list))
RETRIEVAL = Text(_show_retrieval, _read_retrieval)
