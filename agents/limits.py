"""Decide whether a message may be sent: numbers in, a verdict in words out.

Pure: what is counted, and where, is for ``agents.services.allow``. A limit of 0 is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil

from agents import costs

MINUTE = timedelta(minutes=1)
#: When to ask again where nobody can know how long answers take.
SOON = timedelta(seconds=10)


@dataclass(frozen=True)
class Allowance:
    """Hold how many tokens and US dollars may be used in a day; 0: any number."""

    tokens: int = 0
    dollars: Decimal = Decimal(0)

    def __bool__(self) -> bool:
        return bool(self.tokens or self.dollars)


@dataclass(frozen=True)
class Limits:
    """Hold what may be sent: by one person at a time, and by whom in a day."""

    characters: int = 0
    sends_per_minute: int = 0
    turns_at_once: int = 0
    user: Allowance = Allowance()
    resource: Allowance = Allowance()
    server: Allowance = Allowance()


@dataclass(frozen=True)
class Used:
    """Hold the tokens and the US dollars that were used since the day began."""

    tokens: int = 0
    dollars: Decimal = Decimal(0)


@dataclass(frozen=True)
class Counted:
    """Hold what was counted before a message is taken.

    ``full_since`` is when the oldest of the last ``sends_per_minute`` messages was sent, None
    where there were fewer; ``busy`` the other conversations in which the sender's messages wait
    or are answered.
    """

    characters: int = 0
    full_since: datetime | None = None
    busy: int = 0
    user: Used = Used()
    resource: Used = Used()
    server: Used = Used()


@dataclass(frozen=True)
class Reached:
    """Say which limit a message met: how much is allowed, used and left, and until when."""

    limit: str
    sentence: str
    allowed: int | Decimal
    used: int | Decimal
    wait: timedelta | None = None

    @property
    def left(self) -> int | Decimal:
        """Return how much is left."""
        return max(self.allowed - self.used, type(self.allowed)(0))

    @property
    def retry_after(self) -> int | None:
        """Return in how many whole seconds to try again; None: never as it is."""
        return None if self.wait is None else max(1, ceil(self.wait.total_seconds()))


def decide(limits: Limits, counted: Counted, *, now: datetime) -> Reached | None:
    """Return the limit that a message meets, the one that lasts longest first; None: it may go."""
    found = (judge(limits, counted, now) for judge in _JUDGES)
    return next((reached for reached in found if reached is not None), None)


def too_many_pages(allowed: int, used: int) -> Reached | None:
    """Return the limit that one more open page meets, if it does."""
    if not allowed or used < allowed:
        return None
    sentence = (
        f"You have {used:,} pages open, as many as may be. This one is brought up to date every "
        "few seconds; close others to see it live."
    )
    return Reached("pages at once", sentence, allowed, used, MINUTE)


def too_large_frame(allowed: int, used: int) -> Reached | None:
    """Return the limit that a frame of so many bytes meets, if it does."""
    if not allowed or used <= allowed:
        return None
    sentence = (
        f"The message takes {used:,} bytes; at most {allowed:,} can be sent. "
        "Shorten it, or attach it as a file."
    )
    return Reached("bytes per frame", sentence, allowed, used)


def midnight(now: datetime) -> datetime:
    """Return when the day of the limits began, in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def in_words(wait: timedelta) -> str:
    """Return how long to wait: 12 s, 4 min, 5 h 12 min."""
    seconds = max(1, ceil(wait.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes = ceil(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _characters(limits: Limits, counted: Counted, now: datetime) -> Reached | None:
    allowed, used = limits.characters, counted.characters
    if not allowed or used <= allowed:
        return None
    sentence = (
        f"The message has {used:,} characters; at most {allowed:,} can be sent. "
        "Shorten it, or attach it as a file."
    )
    return Reached("characters per message", sentence, allowed, used)


def _days(limits: Limits, counted: Counted, now: datetime) -> Reached | None:
    return next(_spent(limits, counted, now), None)


def _spent(limits: Limits, counted: Counted, now: datetime) -> Iterator[Reached]:
    for who, name, allowed, used in (
        ("You have", "user", limits.user, counted.user),
        ("The conversations of this resource have", "resource", limits.resource, counted.resource),
        ("All conversations on this server have", "server", limits.server, counted.server),
    ):
        wait = midnight(now) + timedelta(days=1) - now
        then = f"Send this one after midnight UTC, in {in_words(wait)}."
        if allowed.tokens and used.tokens >= allowed.tokens:
            sentence = f"{who} used {used.tokens:,} tokens today, of {allowed.tokens:,}. {then}"
            limit = f"tokens per {name} and day"
            yield Reached(limit, sentence, allowed.tokens, used.tokens, wait)
        if allowed.dollars and used.dollars >= allowed.dollars:
            spent, of = costs.words(used.dollars), costs.words(allowed.dollars)
            sentence = f"{who} spent {spent} today, of {of}. {then}"
            limit = f"dollars per {name} and day"
            yield Reached(limit, sentence, allowed.dollars, used.dollars, wait)


def _rate(limits: Limits, counted: Counted, now: datetime) -> Reached | None:
    allowed, since = limits.sends_per_minute, counted.full_since
    if not allowed or since is None or since + MINUTE <= now:
        return None
    wait = since + MINUTE - now
    sentence = (
        f"You sent {_messages(allowed)} within a minute, as many as you may. "
        f"Send this one in {in_words(wait)}."
    )
    return Reached("messages per minute", sentence, allowed, allowed, wait)


def _at_once(limits: Limits, counted: Counted, now: datetime) -> Reached | None:
    allowed, used = limits.turns_at_once, counted.busy
    if not allowed or used < allowed:
        return None
    sentence = (
        f"Your messages wait or are being answered in {_conversations(used)}, as many as may be "
        "at once. Send this one when an answer has come."
    )
    return Reached("turns at once", sentence, allowed, used, SOON)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _conversations(count: int) -> str:
    return "another conversation" if count == 1 else f"{count:,} other conversations"


_JUDGES: tuple[Callable[[Limits, Counted, datetime], Reached | None], ...] = (
    _characters,
    _days,
    _rate,
    _at_once,
)
