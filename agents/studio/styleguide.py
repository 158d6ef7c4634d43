"""Show every part of the pages in every state, for those who work on them."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from agents.gauges import Bar, Gauge
from agents.lines import LineShown
from agents.markers import Fact, Marker
from agents.studio.respond import respond

BADGES = {
    "observing": "Observing 7.2k tokens",
    "buffering": "Buffering 6.1k tokens",
    "buffered": "Buffered 6.1k → 0.4k · 15×",
    "activated": "✓ Activated 3 chunks · 24.6k → 1.9k · 13×",
    "observed": "✓ Observed 7.2k → 0.4k · 18×",
    "reflecting": "Reflecting 22.1k tokens",
    "reflected": "✓ Condensed 22.1k → 8.4k · 2.6×",
    "failed": "Observation failed",
    "interrupted": "Interrupted",
    "changed": "✎ Line edited by Mia",
    "idle": "Idle",
}
KINDS = {"high": "H", "medium": "M", "low": "L", "done": "✓", "plain": "·"}
CHIPS = ["connecting", "live", "reconnecting", "polling", "offline", "paused", "ended"]


@require_GET
def styleguide(request: HttpRequest) -> HttpResponse:
    """Show the parts. Raises Http404 unless DEBUG is on."""
    if not settings.DEBUG:
        raise Http404("The styleguide is shown with DEBUG on.")
    since = (timezone.now() - timedelta(seconds=4)).isoformat(timespec="seconds")
    context = {
        "badges": BADGES.items(),
        "chips": CHIPS,
        "gauges": [_gauge(key, *parts) for key, parts in _GAUGES.items()],
        "lines": [_line(kind, letter) for kind, letter in KINDS.items()],
        "markers": [_marker(state, said, since) for state, said in BADGES.items()],
    }
    return respond(request, "studio/styleguide.html", context)


_GAUGES: dict[str, tuple[str, int, tuple[Bar, ...], str]] = {
    "empty": ("Nothing yet", 0, (), "Buffering begins at 6k"),
    "some": (
        "Some, part of it buffered",
        18,
        (Bar("ahead", "0%", "30%"), Bar("live", "30%", "20%")),
        "Next buffer at 24k",
    ),
    "full": ("At the threshold", 30, (Bar("live", "0%", "83%"),), "Activates at 30k"),
    "over": (
        "Over the ceiling",
        41,
        (Bar("over", "0%", "100%"),),
        "The turn waits for an observation",
    ),
    "shared": (
        "Of several conversations",
        22,
        (Bar("live", "0%", "20%"), Bar("beside", "20%", "41%")),
        "Shared by 3 conversations",
    ),
    "kept": ("Observations", 20, (Bar("kept", "0%", "55%"),), "Condenses at 40k"),
}


def _gauge(key: str, name: str, value: int, bars: tuple[Bar, ...], caption: str) -> Gauge:
    words = f"{value}k of 30k tokens"
    label = f"{value}k / 30k"
    ticks = ("17%", "34%", "51%", "68%")
    return Gauge(
        f"guide-{key}", name, value, 36, label, words, words, caption, bars, ticks, "83%", "20%"
    )


def _line(kind: str, letter: str) -> LineShown:
    text = "Is refitting a kitchen; the budget is 9,000 euros and Tom comes on June 3."
    sub, pinned = kind == "plain", kind == "high"
    return LineShown(f"guide-{kind}", kind, letter, kind, "", "12:10", text, sub, 4, pinned)


def _marker(state: str, said: str, since: str) -> Marker:
    return Marker(
        key=f"guide-{state}",
        position=1,
        state=state,
        words=said,
        running=state in ("observing", "buffering", "reflecting"),
        since=since,
        reason="The threshold was reached.",
        facts=(Fact("Input", "6.1k tokens"),),
    )
