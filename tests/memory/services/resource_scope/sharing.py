"""Observe several conversations in one call, and check what is left raw."""

import re

from asgiref.sync import sync_to_async
from django.db.models import Sum

from memory.models import Message, Observation, Thread
from memory.services.look import look
from memory.verify.run import verify
from tests.fakes import NUMBER, Models, observe_each
from tests.memory.services import play

talk = sync_to_async(play.talk)
look_at = sync_to_async(look)
SECTION = re.compile(r'^<thread id="([^"]+)">$(.*?)^</thread>$', re.M | re.S)


def sections(prompt):
    """Return the threads a prompt of an Observer holds, label by label."""
    return dict(SECTION.findall(prompt.split("<conversation>")[-1]))


def observe_threads(prompt, *, silent=()):
    """Write one line a message, in a block for each thread that is not silent."""
    found = sections(prompt)
    if not found:
        return observe_each(prompt.split("<conversation>")[-1])
    blocks = []
    for label, text in found.items():
        if label in silent:
            continue
        lines = [f"* 🟡 (10:00) Said in {label} at {n} [#{n}]" for n in NUMBER.findall(text)]
        blocks.append(f'<thread id="{label}">\nDate: March 2, 2026\n' + "\n".join(lines))
        blocks.append("</thread>")
    return "<observations>\n" + "\n".join(blocks) + "\n</observations>"


def listening(**options):
    return Models(observer=observe_threads, **options)


def label(thread):
    return thread.pk.hex[-8:]


def raw_tokens():
    """Return the tokens of all messages that no visible observation covers, from the rows."""
    total = 0
    for thread in Thread.objects.all():
        covering = Observation.objects.filter(thread=thread, since__isnull=False)
        through = max(covering.values_list("last_position", flat=True), default=0)
        above = Message.objects.filter(thread=thread, position__gt=through)
        total += above.aggregate(total=Sum("tokens"))["total"] or 0
    return total


def sound():
    return [str(v) for v in verify().violations]


async def is_sound():
    return await sync_to_async(sound)()
