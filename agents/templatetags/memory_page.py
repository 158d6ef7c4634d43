"""Offer the memory page's own filter to its templates."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe

from agents.studio.memory.rows import Row

register = template.Library()


@register.filter
@lru_cache(maxsize=16_384)
def row_html(row: Row, edit: str) -> SafeString:
    """Return the HTML of one row; ``edit`` is where its editor opens, empty where none may.

    Rows are frozen, and of a memory that moves on most stay: each is rendered once.
    """
    known = {"row": row, "edit": edit}
    return mark_safe(get_template("studio/memory/regions.html#row").render(known))
