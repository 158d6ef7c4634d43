"""Render what a page has many of, entries of a log and rows of a list, and keep it.

They are frozen, most of a log is the same from one render to the next, and the pages of a
resource list the same threads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from agents.live import ThreadRow
    from agents.log import Entry
    from agents.panel import Beside


@lru_cache(maxsize=8192)
def entry_bytes(entry: Entry) -> bytes:
    """Return the HTML of one entry of a log, as UTF-8."""
    return get_template(f"chat/entry.html#{entry.template}").render({"entry": entry}).encode()


def entry_html(entry: Entry) -> SafeString:
    """Return the HTML of one entry of a log."""
    return mark_safe(entry_bytes(entry).decode())


@lru_cache(maxsize=8192)
def row_html(row: ThreadRow | Beside) -> SafeString:
    """Return the HTML of one row of a list."""
    return mark_safe(get_template(f"chat/regions.html#{row.template}").render({"row": row}))
