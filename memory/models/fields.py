"""Keep JSON as it was written."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class ExactJSONField(models.JSONField):
    """Hold JSON whose keys keep their order.

    PostgreSQL's jsonb sorts the keys of objects, so that a tool call would come back with
    its arguments in another order than the model gave them; its json type keeps the text.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the column type."""
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        """Return the value as text, which both databases store as it is."""
        if hasattr(value, "as_sql") or value is None:
            return value
        return json.dumps(value, ensure_ascii=False)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        """Return the value, which drivers hand over as text or read already."""
        return json.loads(value) if isinstance(value, str) else value
