"""Look for words in stored texts, whatever their case."""

from __future__ import annotations

import re

from django.db import connection
from django.db.models import Q


def holding(field: str, words: str) -> Q:
    """Return the condition that a field holds some words as they stand, whatever their case."""
    if words.isascii() or connection.vendor != "sqlite":
        return Q(**{f"{field}__icontains": words})
    # SQLite's LIKE folds ASCII alone; its REGEXP is Python's, which folds every script.
    return Q(**{f"{field}__iregex": re.escape(words)})
