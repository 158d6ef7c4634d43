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
    from memory.services import observe, reflect
    from tests.memory.services.play import joined, request, talk, traced

    thread = Thread.objects.get(pk=thread_id)
    for _ in range(turns):
        talk(thread, 1)
        claimed = observe.claim(thread.pk)
        _end(claimed, lambda cycle: observe.commit(cycle, traced(cycle)))
        request(thread)
        claimed = reflect.claim(thread.pk)
        _end(claimed, lambda cycle: reflect.commit(cycle, joined(cycle), 1))


def _end(claimed, commit):
    """Commit what was claimed, or give it up when another process was first."""
    from memory.models.cycle import CycleLost
    from memory.models.record import CursorMoved, RecordMoved
    from memory.services.cycles import discard

    if claimed is None:
        return
    try:
        commit(claimed)
    except (CycleLost, CursorMoved, RecordMoved) as moved:
        discard(claimed.cycle, str(moved))


def check(thread_id, _):
    """Print what is wrong with the thread, and how much was written."""
    from memory.models import Message, Revision
    from memory.verify.run import verify
    from tests.memory.services.oracle import violations

    positions = list(
        Message.objects.filter(thread=thread_id)
        .order_by("position")
        .values_list("position", flat=True)
    )
    revisions = Revision.objects.filter(record__thread=thread_id).count()
    found = violations(thread_id) + [str(v) for v in verify(thread=thread_id).violations]
    print(json.dumps({"found": found, "positions": positions, "revisions": revisions}))


def make(_, __):
    """Make an empty thread, and its tables where there are none, and print its id."""
    from django.core.management import call_command

    from agents.models import AgentProfile
    from agents.services.thread import start
    from memory.models import Resource

    call_command("migrate", verbosity=0)
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
