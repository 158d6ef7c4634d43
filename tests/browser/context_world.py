"""Make conversations in every state of the context pages; run as a program, as the server is.

Writes what it made as JSON: names to ids.
"""

import asyncio
import json
import os
import sys

SAID = [
    "I am refitting my kitchen; the budget is 8,000 euros and the oven must be 60 cm wide.",
    "The worktop should be oak, not laminate. The plumber is called Ruth and comes on Tuesdays.",
    "Deliveries must avoid Fridays: the street is closed then. What should I order first?",
    "Please compare the quotes of Holm and Berg: Holm asks 1,840 euros, Berg 1,690 bare.",
    "The tiles are from Porto and blue. My sister Mara lends me a tile cutter until May 12.",
    "We cook with gas, but want induction. What does the electrician need to know?",
    "The budget rose to 9,000 euros, and Ruth moved to Thursdays.",
]
MANUAL = "Read the whole manual of the oven before it is fitted. " * 60


async def talk(thread, models, *prompts):
    from asgiref.sync import sync_to_async

    from agents.services.send import send
    from agents.services.turn import run_turns
    from memory.services.due import run_due

    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)


def fail_a_call(thread):
    """Let the Observer fail for the next range."""
    from memory.models import Cycle
    from tests.fakes import Models

    def broken(text):
        return "I would rather not say anything in that form."

    asyncio.run(talk(thread, Models(observer=broken), *SAID[:4]))
    return Cycle.objects.filter(status="failed").latest("started_at")


def memories(requests):
    """Return the hashes of the memory blocks of requests."""
    return {
        block["hash"] for each in requests for block in each.blocks if block["kind"] == "memory"
    }


def make():
    from agents.models import RequestSnapshot
    from agents.services.thread import start
    from memory import llm
    from memory.models import Blob, Cycle
    from memory.services.configure import configure
    from tests.browser.world import make as make_base

    def offline(name):
        return llm.shared("offline")

    resource, profile = make_base()
    profile.tools = ["current_time", "recall"]
    profile.save()
    empty = start(resource, profile, title="Nothing yet")
    kitchen = start(resource, profile, title="Kitchen refit")
    asyncio.run(talk(kitchen, offline, *SAID))
    call = Cycle.objects.filter(thread=kitchen, status="done").latest("started_at")
    broken = start(resource, profile, title="A broken Observer")
    failed = fail_a_call(broken)
    full = start(resource, profile, title="Too much")
    configure(full.pk, {"message_tokens": 50_000})
    asyncio.run(talk(full, offline, SAID[0], MANUAL, SAID[1]))
    configure(full.pk, {"context_tokens": 1000})
    gone = start(resource, profile, title="Long ago")
    # In other words: what is remembered alike is kept once, and would be gone for both.
    asyncio.run(talk(gone, offline, *(f"Years ago I wrote: {said}" for said in SAID)))
    hashes = memories(RequestSnapshot.objects.filter(turn__thread=gone))
    shared = hashes & memories(RequestSnapshot.objects.exclude(turn__thread=gone))
    assert not shared, "Other conversations remember the same, and would lose their texts too."
    Blob.objects.filter(hash__in=hashes).delete()
    busy = start(resource, profile, title="Busy")
    asyncio.run(talk(busy, offline, *SAID[:3]))
    return {
        "empty": str(empty.pk),
        "kitchen": str(kitchen.pk),
        "full": str(full.pk),
        "gone": str(gone.pk),
        "busy": str(busy.pk),
        "call": str(call.pk),
        "failed": str(failed.pk),
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    json.dump(make(), sys.stdout)
