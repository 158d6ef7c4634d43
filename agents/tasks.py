"""Do in Celery workers what an embedded server does itself."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from .services import expire as expiring


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def expire(**_: Any) -> None:
    """Remove what is kept no longer."""
    expiring.expire()
