"""Write a resource as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from memory.models import Resource
from memory.verify.rows import one_moment

from .tables import MEMORY, Table

FORMAT, VERSION = "omsite", 2
KNOWN = (1, VERSION)
"""Version 1 counted lines by their text alone; such a file is counted anew when it comes in."""


def write(resource: Resource, tables: Sequence[Table] = MEMORY) -> Iterator[str]:
    """Return the lines of a resource's bundle, each with its end, all as of one moment."""
    with one_moment():
        yield _line({"bundle": FORMAT, "version": VERSION, "resource": resource.key})
        count = 0
        for table in tables:
            for row in table.lines(resource):
                count += 1
                yield _line(row)
        yield _line({"end": True, "rows": count})


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
