"""Read the environment once, typed: each setting with its default and what it is for."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

BASE = Path(__file__).resolve().parent.parent


class Config(BaseSettings):
    """Hold what the environment says; an empty environment is the embedded mode."""

    # What is refused may hold a password.
    model_config = SettingsConfigDict(
        extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    database_url: str = Field(
        f"sqlite:///{BASE / 'omsite.sqlite3'}",
        description="Where data lives: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    )
    redis_url: str = Field(
        "", description="Redis for several processes; unset: everything in one process."
    )
    secret_key: str = Field(
        "", repr=False, description="Django's secret; unset: made once and kept beside manage.py."
    )
    debug: bool = Field(False, description="Show tracebacks in the browser. Never in production.")
    allowed_hosts: str = Field(
        "localhost,127.0.0.1,[::1]", description="Host names the server answers to, by comma."
    )
    om_https: bool = Field(
        True,
        description="Serve over HTTPS only, once REDIS_URL is set; off for a trial on loopback.",
    )
    om_behind_proxy: bool = Field(
        False,
        description="Believe X-Forwarded-Proto and -For: only behind a proxy that sets them.",
    )
    om_model: str = Field(
        "offline", description="The Actor's model, like openai:gpt-5-mini; offline needs no key."
    )
    om_observer_model: str = Field("", description="The Observer's model; unset: OM_MODEL.")
    om_reflector_model: str = Field("", description="The Reflector's model; unset: OM_MODEL.")
    om_observer_prompt: Literal["full", "condensed"] = Field(
        "full", description="How much the Observer is told: condensed suits small models."
    )
    om_extractors: str = Field(
        "", description="Dotted paths of extractors that agents may name, by comma."
    )
    om_hooks: str = Field("", description="Dotted paths of hooks into memory's work, by comma.")
    om_hook_execution: Literal["await", "background"] = Field(
        "background", description="Whether memory's work waits for its hooks and fails with them."
    )
    om_model_base_url: str = Field(
        "", description="Base URL of an OpenAI-compatible server, like http://127.0.0.1:11434/v1."
    )
    om_offline_delay: float = Field(
        1.5, ge=0, description="Seconds the offline model takes, so that its work can be watched."
    )
    om_lease_seconds: float = Field(
        20, gt=0, description="After how long a dead process's turns and cycles are taken over."
    )
    om_drain_seconds: float = Field(
        20, ge=0, description="How long a process that is told to end goes on answering turns."
    )
    om_dispatcher: Literal["embedded", "celery"] = Field(
        "embedded",
        description="Who runs Observers and Reflectors: the serving process, or Celery workers.",
    )

    om_log_format: Literal["text", "json"] = Field(
        "text", description="How log records are written: lines of text, or lines of JSON."
    )
    om_metrics: bool = Field(
        False, description="Measure, and show the figures at /metrics in Prometheus' format."
    )
    om_metrics_token: str = Field(
        "", repr=False, description="What a scraper sends as its bearer token; unset: staff only."
    )
    om_metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port on which a worker shows its figures; 0: it shows none.",
    )
    om_traces: bool = Field(
        False, description="Send OpenTelemetry traces of turns, steps, cycles and model calls."
    )
    om_traces_content: bool = Field(
        False, description="Put what people and models say into traces too."
    )
    otel_exporter_otlp_endpoint: str = Field(
        "", description="Where traces are sent, like http://127.0.0.1:4318; read by the exporter."
    )
    otel_exporter_otlp_traces_endpoint: str = Field(
        "", description="The whole address traces are sent to, instead; read by the exporter."
    )

    static_root: str = Field(
        str(BASE / "staticfiles"),
        description="Folder of the collected static files, whose names hold their hashes.",
    )
    media_root: str = Field(
        str(BASE / "media"),
        description="Folder for pictures and files of conversations; processes must share it.",
    )
    om_attachment_megabytes: float = Field(
        5, gt=0, le=100, description="How large one attached picture or file may be, in MB."
    )
    om_attachments_per_message: int = Field(
        5, ge=0, le=100, description="How many files one message may carry; 0 switches them off."
    )

    # ---- limits: see docs/limits.md; 0 is none
    om_message_characters: int = Field(
        200_000, ge=0, description="How many characters one message may have; 0: any number."
    )
    om_frame_kilobytes: int = Field(
        1024, ge=0, description="How large one frame that a page sends may be, in kB; 0: any size."
    )
    om_sockets_per_user: int = Field(
        100, ge=0, description="How many pages one person may have open in a process; 0: any."
    )
    om_sends_per_minute: int = Field(
        60, ge=0, description="How many messages one person may send in a minute; 0: any number."
    )
    om_turns_at_once: int = Field(
        20, ge=0, description="In how many conversations one person is answered at once; 0: in any."
    )
    om_tokens_per_user: int = Field(
        0, ge=0, description="Tokens one person's turns may use in a day (UTC); 0: any number."
    )
    om_tokens_per_resource: int = Field(
        0, ge=0, description="Tokens one resource may use in a day, memory included; 0: any number."
    )
    om_tokens_per_day: int = Field(
        0, ge=0, description="Tokens the server may use in a day, memory included; 0: any number."
    )
    om_dollars_per_user: Decimal = Field(
        Decimal(0), ge=0, description="US dollars one person's turns may cost in a day; 0: any sum."
    )
    om_dollars_per_resource: Decimal = Field(
        Decimal(0), ge=0, description="US dollars one resource may cost in a day; 0: any sum."
    )
    om_dollars_per_day: Decimal = Field(
        Decimal(0), ge=0, description="US dollars the server may cost in a day; 0: any sum."
    )
    om_sign_in_tries_per_account: int = Field(
        10, ge=0, description="How often signing in to one account may fail; 0: any number."
    )
    om_sign_in_tries_per_address: int = Field(
        50, ge=0, description="How often signing in from one address may fail; 0: any number."
    )
    om_sign_in_minutes: float = Field(
        15, gt=0, description="For how many minutes a failure to sign in counts."
    )

    # ---- retention: see docs/retention.md; 0 is for ever
    om_keep_requests_days: int = Field(
        90, ge=0, le=36_500, description="Days the texts of Actors' requests are kept; 0: for ever."
    )
    om_keep_calls_days: int = Field(
        90, ge=0, le=36_500, description="Days what memory's calls said is kept; 0: for ever."
    )
    om_keep_audit_days: int = Field(
        730, ge=0, le=36_500, description="Days entries of the audit are kept; 0: for ever."
    )
    om_keep_temporary_days: int = Field(
        30, ge=0, le=36_500, description="Days a temporary chat may rest; 0: for ever."
    )
    om_keep_conversations_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="Days any conversation may rest; 0: for ever.",
    )

    om_calls_per_provider: int = Field(
        32, ge=0, description="Model calls at once, for each provider and process; 0: any number."
    )
    om_model_silence: float = Field(
        180, ge=0, description="Seconds the Actor's model may say nothing; 0: any number."
    )
    om_model_tries: int = Field(
        3, ge=1, le=10, description="How often the Actor's call is tried while a provider is busy."
    )

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if not re.fullmatch(r"(sqlite:///|postgres(ql)?://).+", value):
            raise ValueError("must be sqlite:///FILE or postgresql://USER@HOST/NAME")
        return value

    @property
    def embedded(self) -> bool:
        """Tell whether everything runs in one process."""
        return not self.redis_url

    def secret(self) -> str:
        """Return the secret key, making and keeping one in the embedded mode.

        Raises ValueError outside the embedded mode when SECRET_KEY is not set.
        """
        if self.secret_key:
            return self.secret_key
        if not self.embedded:
            raise ValueError(
                "(omsite.E003) Set SECRET_KEY: several processes must share one secret. This makes "
                "one: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
            )
        return _kept_secret(BASE / ".secret_key")


def _kept_secret(path: Path) -> str:
    if path.exists() and not path.read_text().strip():
        path.unlink(missing_ok=True)
    # Linked into place whole and private, so that no process starting beside this one reads half.
    with NamedTemporaryFile("w", dir=path.parent) as made, suppress(FileExistsError):
        made.write(secrets.token_urlsafe(50))
        made.flush()
        os.link(made.name, path)
    return path.read_text().strip()
