"""List conversations."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, TextIO

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from memory.models import Message, Thread

from ..models import Turn
from .table import write_json, write_table

HELP = "List the conversations with their resource, size and state."
COLUMNS = {
    "thread": "id",
    "resource": "resource",
    "title": "title",
    "messages": "messages",
    "tokens": "tokens",
    "state": "state",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(out: TextIO, *, json: bool) -> int:
    """Write the conversations, the latest first."""
    rows = [_row(thread) for thread in _threads()]
    if json:
        write_json(out, {"threads": rows})
    elif rows:
        write_table(out, COLUMNS, rows)
    else:
        out.write("There are no conversations yet.\n")
    return 0


def _threads() -> QuerySet[Any]:
    messages = Message.objects.filter(thread=OuterRef("pk")).order_by().values("thread")
    turns = Turn.objects.filter(thread=OuterRef("pk")).order_by().values("thread")
    ways = {"running": Turn.objects.running(), "waiting": Turn.objects.waiting()}
    return (
        Thread.objects.there()
        .select_related("resource")
        .order_by("-last_active_at")
        .annotate(
            messages_stored=_total(messages.annotate(total=Count("pk"))),
            tokens_stored=_total(messages.annotate(total=Sum("tokens"))),
            **{
                way: _total(turns.filter(pk__in=chosen.values("pk")).annotate(total=Count("pk")))
                for way, chosen in ways.items()
            },
        )
    )


def _total(counted: QuerySet[Any, Any]) -> Any:
    return Coalesce(Subquery(counted.values("total")), 0, output_field=IntegerField())


def _row(thread: Any) -> dict[str, Any]:
    return {
        "thread": thread.pk,
        "resource": thread.resource.key,
        "title": str(thread),
        "messages": thread.messages_stored,
        "tokens": thread.tokens_stored,
        "state": _state(thread),
        "remembers": thread.remembers,
    }


def _state(thread: Any) -> str:
    if thread.running:
        return "running"
    if thread.waiting:
        return f"{thread.waiting} waiting"
    return "idle" if thread.remembers else "idle, no memory"
