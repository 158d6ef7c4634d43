"""Turn the memory of a conversation off and on while it is not being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from memory.services import remember as memory
from memory.services.change import Refused

from ..models import Turn

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def remember(thread_id: UUID, on: bool, *, author: User | None = None, reason: str = "") -> None:
    """Let a conversation remember from now on, or no more. Raises Refused while a turn runs."""

    def idle() -> None:
        if Turn.objects.running().filter(thread=thread_id).exists():
            raise Refused("An answer is being written. Switch memory when it is done.")

    memory.remember(thread_id, on, author=author, reason=reason, fence=idle)
