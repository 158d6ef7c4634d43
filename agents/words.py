"""Put numbers, spans and dates into the words the pages use."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import perf_counter


def tokens(count: int) -> str:
    """Return a count as the pages print it: 950, 1.2k, 128k, 1.2M."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return _short(count / 1000) + "k"
    return _short(count / 1_000_000) + "M"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}".removesuffix(".0")


def filesize(size: int) -> str:
    """Return a number of bytes as the pages print it: 950 B, 12 kB, 3.4 MB."""
    if size < 1000:
        return f"{size} B"
    if size < 999_500:
        return f"{_short(size / 1000)} kB"
    return f"{_short(size / 1_000_000)} MB"


def spoken(count: int) -> str:
    """Return a count as a screen reader should say it."""
    return str(count) if count < 1000 else f"{_short(count / 1000)} thousand"


def ratio(before: int, after: int) -> str:
    """Return how many times smaller something became; empty when that says nothing."""
    return f"{_short(before / after)}×" if before and after else ""


def percent(part: float, whole: float) -> str:
    """Return a share for an SVG attribute, kept within 0 and 100."""
    return f"{min(100.0, max(0.0, 100 * part / whole)) if whole else 0:.2f}%"


def ago(now: datetime, at: datetime) -> str:
    """Return how long ago a moment was, roughly."""
    seconds = int((now - at).total_seconds())
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    if seconds < 86_400:
        return f"{seconds // 3600} h ago"
    return days_ago((now.date() - at.date()).days)


def days_ago(days: int) -> str:
    """Return a number of days as a distance from today."""
    if days <= 0:
        return "today" if days == 0 else f"in {_counted(-days, 'day')}"
    if days < 14:
        return "yesterday" if days == 1 else f"{days} days ago"
    if days < 60:
        return f"{days // 7} weeks ago"
    if days < 730:
        return f"{days // 30} months ago"
    return f"{days // 365} years ago"


def later(span: timedelta) -> str:
    """Return how much later something was said."""
    minutes = int(span.total_seconds() // 60)
    if minutes < 90:
        return f"{_counted(minutes, 'minute')} later"
    if minutes < 36 * 60:
        return f"{_counted(round(minutes / 60), 'hour')} later"
    days = round(minutes / 1440)
    return f"{_counted(days, 'day')} later" if days < 60 else f"{days // 30} months later"


def since(began: float) -> str:
    """Return how long ago the performance counter stood there."""
    return lasted(timedelta(seconds=perf_counter() - began))


def lasted(span: timedelta) -> str:
    """Return a duration: 1.5 s, 42 s, 2 min 5 s."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def day(at: datetime) -> str:
    """Return a date: 15 Jan 2026."""
    return f"{at.day} {at:%b %Y}"


def clock(at: datetime) -> str:
    """Return a time of day: 09:05."""
    return f"{at:%H:%M}"


def first_words(text: str, limit: int) -> str:
    """Return the beginning of a text on one line, with an ellipsis where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
