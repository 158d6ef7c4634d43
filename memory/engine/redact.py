"""Take out of a tool's text what no reader can use: encrypted fields and encoded files."""

from __future__ import annotations

import re

LONGEST_KEPT = 256

_ENCRYPTED = re.compile(
    r"(?P<key>\"(?:encrypted_?(?:content|reasoning|data)|thought_?signature)\"\s{0,8}:\s{0,8}\")"
    r"(?P<text>(?:[^\"\\]|\\.)*+)(?=\")",
    re.IGNORECASE | re.DOTALL,
)
_ENCODED = re.compile(
    r"data:(?P<type>[\w.+-]{1,40}/[\w.+-]{1,40})[^,\"\s]{0,80},[A-Za-z0-9+/=_-]*+"
)


def redact(text: str) -> str:
    """Return the text with encrypted JSON fields and data URIs replaced by their length.

    Short ones, of up to 256 characters, stay.
    """
    return _ENCODED.sub(_encoded, _ENCRYPTED.sub(_encrypted, text))


def _encrypted(match: re.Match[str]) -> str:
    size = len(match["text"])
    return match[0] if size <= LONGEST_KEPT else f"{match['key']}[{size} encrypted characters]"


def _encoded(match: re.Match[str]) -> str:
    size = len(match[0])
    return match[0] if size <= LONGEST_KEPT else f"[{match['type']} of {size} characters]"
