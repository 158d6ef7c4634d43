"""Run one of several processes that write to the same thread at once.

``python -m tests.memory.services.racer live|check THREAD [TURNS]``
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")


def live(thread_id, turns):
    """Append turns, observe ahead, activate and condense as if nobody else did."""
    from memory.models import Thread
    from memory.models.cycle import CycleLost
    from memory.models.record import CursorMoved, RecordMoved
    from tests.memory.services.play import buffer, condense, request, talk

    thread = Thread.objects.get(pk=thread_id)
    for _ in range(turns):
        talk(thread, 1)
        for step in (buffer, request, condense):
            try:
                step(thread)
            except (CycleLost, CursorMoved, RecordMoved):
                # Another process was first, and whoever comes second gives up.
                continue


def check(thread_id, _):
    """Print what is wrong with the thread, and how much was written."""
    from memory.models import Message, Revision
    from tests.memory.services.oracle import violations

    positions = list(
        Message.objects.filter(thread=thread_id)
        .order_by("position")
        .values_list("position", flat=True)
    )
    revisions = Revision.objects.filter(record__thread=thread_id).count()
    found = violations(thread_id)
    print(json.dumps({"found": found, "positions": positions, "revisions": revisions}))


def make(_, __):
    """Make an empty thread and print its id."""
    from agents.models import AgentProfile
    from agents.services.thread import start
    from memory.models import Resource

    profile, _ = AgentProfile.objects.get_or_create(
        slug="racer",
        defaults={"memory_options": {"message_tokens": 600, "observation_tokens": 120}},
    )
    resource, _ = Resource.objects.get_or_create(key="racer")
    print(json.dumps({"thread": str(start(resource, profile).pk)}))


if __name__ == "__main__":
    django.setup()
    what, thread, turns = [*sys.argv[1:], "", "0"][:3]
    {"live": live, "check": check, "make": make}[what](thread, int(turns or 0))
