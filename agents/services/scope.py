"""Change the scope of a resource's memory while none of its conversations is being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.models import MemoryRecord, Resource
from memory.services import scope as memory
from memory.services.change import Refused

from ..models import Turn

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def change_scope(
    resource: Resource, scope: str, *, author: User | None = None, reason: str = ""
) -> list[MemoryRecord]:
    """Let conversations share one memory, or have each its own; return the new records.

    Raises Refused while a turn runs, or when there is no such scope.
    """

    def idle() -> None:
        if Turn.objects.running().filter(thread__resource=resource).exists():
            raise Refused("An answer is being written. Change the scope when it is done.")

    return memory.change_scope(resource.pk, scope, author=author, reason=reason, fence=idle)
