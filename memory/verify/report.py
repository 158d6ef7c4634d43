"""Say what was checked and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Violation:
    """Name one broken invariant in one sentence, with the ids and numbers of its rows."""

    invariant: str
    sentence: str
    rows: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """Hold how many rows of each table were checked, and every violation found."""

    checked: dict[str, int]
    violations: tuple[Violation, ...] = ()

    @property
    def clean(self) -> bool:
        """Tell whether every invariant holds."""
        return not self.violations

    @property
    def summary(self) -> str:
        """Return the result in one line."""
        found = len(self.violations)
        result = f"Found {_counted(found, 'violations')}" if found else "Every invariant holds"
        counted = ", ".join(_counted(count, table) for table, count in self.checked.items())
        return f"{result} ({counted or 'nothing stored yet'})."


def _counted(count: int, things: str) -> str:
    return f"{count:,} {things if count != 1 else things.removesuffix('s')}"
