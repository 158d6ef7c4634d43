"""Ask PostgreSQL how it carries out each statement that is sent, while it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
LARGE = {"memory_message", "memory_observation", "memory_line", "memory_cycle"}


@dataclass
class Plans:
    """Hold each statement's plan, by its text and by what is done meanwhile."""

    doing: str = ""
    asked: int = 0
    known: set[tuple[str, str]] = field(default_factory=set)
    sequential: dict[str, list[str]] = field(default_factory=dict)
    by_doing: dict[str, int] = field(default_factory=dict)

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        text = sql.lstrip()
        if not many and text.upper().startswith(EXPLAINED) and (self.doing, text) not in self.known:
            self.known.add((self.doing, text))
            self._explain(text, params)
        return execute(sql, params, many, context)

    def _explain(self, sql: str, params: Any) -> None:
        found = connection.connection.execute(f"EXPLAIN (FORMAT JSON) {sql}", params).fetchone()[0]
        plan = found if isinstance(found, list) else json.loads(found)
        self.asked += 1
        self.by_doing[self.doing] = self.by_doing.get(self.doing, 0) + 1
        for table in sorted(set(scanned(plan[0]["Plan"])) & LARGE):
            self.sequential.setdefault(f"{self.doing}: {table}", []).append(sql[:400])

    @contextmanager
    def on(self, doing: str) -> Iterator[None]:
        """Look at what this thread sends while the block runs."""
        self.doing = doing
        connection.execute_wrappers.append(self)
        try:
            yield
        finally:
            connection.execute_wrappers.remove(self)


def scanned(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the tables that a plan reads from end to end."""
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for inner in plan.get("Plans", ()):
        yield from scanned(inner)
