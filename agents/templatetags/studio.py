"""Offer the page's own filters to templates."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.conf import settings
from django.utils import timezone
from django.utils.safestring import SafeString

from agents import words
from agents.markdown import render_markdown
from agents.pieces import entry_html, row_html
from agents.studio.as_api import Call, calls

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Return sanitised HTML for Markdown."""
    return render_markdown(text)


@register.filter
def ago(at: str) -> str:
    """Return how long ago a moment in ISO 8601 was, for a clock that no script goes on with."""
    return words.ago(timezone.now(), datetime.fromisoformat(at))


register.filter("entry_html", entry_html)
register.filter("row_html", row_html)


@register.simple_tag(takes_context=True)
def as_api(context: template.Context) -> list[Call]:
    """Return how a script asks for what the page shows."""
    page, thread, resource = (context.get(name) for name in ("page", "thread", "resource"))
    return calls(context["request"], page or "", thread, resource)


@register.simple_tag
def temporary_ends() -> str:
    """Return when a temporary conversation goes by itself, as the rest of a sentence."""
    days = settings.KEPT_DAYS["temporary"]
    if not days:
        return "kept until it is discarded"
    return f"erased once nobody wrote in it for {days} day{'' if days == 1 else 's'}"
