"""Write log records: with the ids of what they are about, without secrets, as text or as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Literal

from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

from memory import telemetry

from .redact import redact

#: What a record can be about.
IDS = ("turn", "thread", "cycle")


class About(logging.Filter):
    """Give every record the ids of the turn, thread and cycle it is about; empty where none is.

    ``about`` holds those there are, for the end of a line; a trace that is under way is named too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Complete the record; none is left out."""
        known = telemetry.ids()
        for name in IDS:
            setattr(record, name, known.get(name, ""))
        record.about = "".join(f" {name}={known[name]}" for name in IDS if name in known)
        span = get_current_span().get_span_context()
        record.trace = format_trace_id(span.trace_id) if span.is_valid else ""
        record.span = format_span_id(span.span_id) if span.is_valid else ""
        return True


class WithoutSecrets(logging.Filter):
    """Take secrets out of every record: out of its message, its traceback and its stack."""

    _writer = logging.Formatter()

    def __init__(self, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Write the record out and clean it; none is left out."""
        record.msg, record.args = self._clean(_message(record)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._writer.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._clean(record.exc_text)
        if record.stack_info:
            record.stack_info = self._clean(record.stack_info)
        return True

    def _clean(self, text: str) -> str:
        return redact(text, self._secrets)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # A message whose arguments do not fit is worth its own text all the same.
        return f"{record.msg} {record.args}"


class Json(logging.Formatter):
    """Write a record as one line of JSON: when, how grave, from where, what, and about what.

    What callers attach to a record besides is left out: it may be anything, a request included.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        line |= {name: getattr(record, name, "") for name in (*IDS, "trace", "span")}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        line |= {"exception": record.exc_text or "", "stack": record.stack_info or ""}
        return json.dumps({k: v for k, v in line.items() if v != ""}, ensure_ascii=False)


def logging_config(form: Literal["text", "json"], secrets: Collection[str]) -> dict[str, Any]:
    """Return what Django is to configure logging with; workers use it too."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "about": {"()": "omsite.logs.About"},
            "without_secrets": {"()": "omsite.logs.WithoutSecrets", "secrets": secrets},
        },
        "formatters": {
            "text": {"format": "{asctime} {levelname} {name}: {message}{about}", "style": "{"},
            "json": {"()": "omsite.logs.Json"},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": form,
                "filters": ["about", "without_secrets"],
            }
        },
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            "memory": {"level": "INFO"},
            "agents": {"level": "INFO"},
            "omsite": {"level": "INFO"},
            # Their own handlers would write past the filters.
            "django": {"level": "INFO", "handlers": []},
            "django.server": {"level": "INFO", "handlers": [], "propagate": True},
        },
    }
