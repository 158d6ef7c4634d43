"""Offer the page's own filters to templates."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe

from agents.log import Entry
from agents.markdown import render_markdown

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Return sanitised HTML for Markdown."""
    return render_markdown(text)


@register.filter
@lru_cache(maxsize=8192)
def entry_html(entry: Entry) -> SafeString:
    """Return the HTML of one entry of a log.

    Entries are frozen and most of a log is the same from one render to the next.
    """
    html = get_template(f"chat/entry.html#{entry.template}").render({"entry": entry})
    return mark_safe(html)
