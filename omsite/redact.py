"""Take secrets out of a text before it is written anywhere: known ones, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote, urlsplit

from agents.secrets import SHAPES

HIDDEN = "[hidden]"
#: What is shorter stands in too many words to be looked for.
SHORTEST = 8

_TELLING = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|HEADERS)$")
_ADDRESSES = re.compile(r"(?:URL|URI|DSN|ENDPOINT)$")

#: A header or a cookie jar, whose value goes to the end of the line or of the quotation.
_HEADER = re.compile(
    r"""(?ix) \b ((?:proxy-)?authorization | (?:set-)?cookie ) (["']?,?\s*[:=,]\s*b?["']?)
    [^"'\r\n]+ """
)
#: Something named like a secret, with its value.
_NAMED = re.compile(
    r"""(?ix) \b ([\w-]{0,40}? (?: api[_-]?key | secret(?:[_-]?key)? | password | passwd | token
    | sessionid | csrftoken | access[_-]?key | credentials )) (["']?\s*[:=]\s*b?["']?)
    [^\s"'&,;)}\]]+ """
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}")
_BASIC = re.compile(r"\b(Basic\s+)[A-Za-z0-9+/]{12,}={0,2}(?![\w.])")
_IN_ADDRESS = re.compile(r"(://[^\s/@:]{0,200}:)[^\s/@]+(?=@)")


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """Return the text without the secrets given, and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _NAMED.sub(rf"\1\2{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _BASIC.sub(rf"\1{HIDDEN}", text)
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}", text)
    return SHAPES.sub(HIDDEN, text)


def secrets_in(environment: Mapping[str, str], *others: str) -> tuple[str, ...]:
    """Return the secrets that an environment holds, and others, the longest first."""
    found = {*others, *_found(environment)}
    return tuple(sorted((s for s in found if len(s) >= SHORTEST), key=len, reverse=True))


def _found(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if name.endswith("HEADERS"):
            # As OpenTelemetry takes them: name=value, by comma.
            yield from (unquote(each.partition("=")[2].strip()) for each in value.split(","))
        elif _TELLING.search(name):
            yield value
        elif _ADDRESSES.search(name):
            yield from _password(value)


def _password(address: str) -> Iterator[str]:
    try:
        password = urlsplit(address).password or ""
    except ValueError:
        return
    yield from (password, unquote(password))
