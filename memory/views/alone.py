"""Answer with a partial for a script, with a whole page for everybody else."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def partial_or_page(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    title: str,
    thread: UUID | None,
) -> HttpResponse:
    """Return the template alone when a script asked, else inside a page of its own."""
    if request.headers.get("HX-Request"):
        return render(request, template, context)
    back = f"/chat/{thread}/" if thread else "/"
    alone = {**context, "title": title, "body": template, "back": back}
    return render(request, "memory/alone.html", alone)
