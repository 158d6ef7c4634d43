"""Keep text that people, tools and models wrote from passing for our own tags."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

TAGS = (
    "observations",
    "conversation",
    "previous-observations",
    "hints",
    "current-task",
    "suggested-response",
    "thread-title",
    "thread",
    "memory",
    "reminder",
    "other-conversation",
    "other-conversations",
    "instructions",
    "lines",
    "pinned",
)


# Models read "< / memory >" as a tag too. The blanks are bounded so that a text made of
# them is still scanned in linear time.
@lru_cache(maxsize=64)
def _tag(names: tuple[str, ...]) -> re.Pattern[str]:
    any_name = "|".join(map(re.escape, names))
    return re.compile(rf"<(?=[ \t]{{0,8}}/?[ \t]{{0,8}}(?:{any_name})(?![\w-]))", re.IGNORECASE)


_TAG = _tag(TAGS)

_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def escape(text: str, names: Collection[str] = ()) -> str:
    """Return the text with ``&lt;`` where one of our tags, or of ``names``, would open or close."""
    tag = _tag((*TAGS, *sorted(names))) if names else _TAG
    return tag.sub("&lt;", text)


def clean(text: str) -> str:
    r"""Return the text with ``\n`` for every line end, and U+FFFD for what cannot be shown.

    Control characters (except newline and tab) and lone surrogates cannot be shown.
    """
    return _UNPRINTABLE.sub("\ufffd", _LINE_ENDS.sub("\n", text))
