"""Write rows for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO


def write_json(out: TextIO, document: object) -> None:
    """Write one JSON document; ids and times become text."""
    out.write(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")


def write_table(out: TextIO, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as aligned columns under headings; numbers stand on the right."""
    rows = list(rows)
    shown = [[_cell(row[key]) for key in columns] for row in rows]
    numeric = [all(isinstance(row[key], int) for row in rows) for key in columns]
    headings = list(columns.values())
    widths = [max(map(len, column)) for column in zip(headings, *shown, strict=True)]
    for cells in (headings, *shown):
        out.write(_line(cells, widths, numeric) + "\n")


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split())
