"""Add to the bundle of a resource what conversations keep beside memory: turns and requests."""

from __future__ import annotations

from collections.abc import Iterator

from memory.bundle import MEMORY, Table
from memory.bundle.tables import AT_ONCE, blobs_of, file_table, files_of
from memory.models import Blob, Media, Resource

from .models import RequestSnapshot, Turn
from .om.turns import running_turns


def _turns(resource: Resource) -> Iterator[Turn]:
    return Turn.objects.filter(thread__resource=resource).order_by("id").iterator(AT_ONCE)


def _requests(resource: Resource) -> Iterator[RequestSnapshot]:
    mine = RequestSnapshot.objects.filter(turn__thread__resource=resource)
    return mine.order_by("turn_id", "step").iterator(AT_ONCE)


def _sent(resource: Resource) -> Iterator[Blob]:
    """Yield the texts of requests."""
    blocks = (block for request in _requests(resource) for block in request.blocks)
    return blobs_of({block["hash"] for block in blocks if block.get("hash")})


def _attached(resource: Resource) -> Iterator[Media]:
    """Yield the files of prompts that wait: no message holds them yet."""
    waiting = Turn.objects.waiting().filter(thread__resource=resource).exclude(attachments=[])
    attached = waiting.values_list("attachments", flat=True)
    return files_of({file["hash"] for files in attached for file in files})


TABLES: tuple[Table, ...] = (
    *MEMORY,
    Table("sent", Blob, ("hash",), _sent, without=frozenset({"kept_at"}), shared=True),
    file_table("file", _attached),
    Table("turn", Turn, ("id",), _turns),
    Table("request", RequestSnapshot, ("turn", "step"), _requests),
)

__all__ = ["TABLES", "running_turns"]
