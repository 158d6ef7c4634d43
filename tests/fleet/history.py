"""Store messages in threads, prompts and answers by turns, as if people had talked there for long.

Usage: python -m tests.fleet.history MESSAGES THREAD...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from random import Random
from uuid import UUID


def main(arguments: Sequence[str]) -> None:
    """Store them."""
    count, *threads = arguments
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    random = Random(1)
    for thread in threads:
        _talk(UUID(thread), int(count), random)


def _talk(thread: UUID, count: int, random: Random) -> None:
    from django.utils import timezone
    from pydantic_ai.messages import ModelResponse, TextPart

    from memory.messages import user_prompt
    from memory.services.append import append
    from tests.bench.texts import paragraph

    at = timezone.now()
    for _ in range(count // 2):
        answer = ModelResponse(parts=[TextPart(paragraph(random))], timestamp=at)
        append(thread, [user_prompt(paragraph(random), at), answer], at=at)


if __name__ == "__main__":
    main(sys.argv[1:])
