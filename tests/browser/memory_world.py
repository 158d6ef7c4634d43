"""Make memories in every state for the memory page; run as a program, as the server is.

Writes what it made as JSON: names to ids.
"""

import asyncio
import json
import os
import sys

SAID = [
    ("I am refitting my kitchen; the budget is 8,000 euros.", "A refit for 8,000 euros is noted."),
    ("The worktop should be oak, not laminate.", "Oak it is."),
    ("The plumber is called Ruth and comes on Tuesdays.", "Ruth, on Tuesdays."),
    ("Deliveries must avoid Fridays: the street is closed then.", "No deliveries on Fridays."),
    ("The oven has to be 60 cm wide and self-cleaning.", "60 cm, self-cleaning."),
    ("Please compare the quotes of Holm and Berg.", "Holm asks 1,840 euros, Berg 1,690."),
    ("Berg excludes fitting, which costs 220 euros more.", "Then Holm is cheaper by 70 euros."),
    ("The tiles are from Porto and blue.", "Blue tiles from Porto."),
    ("My sister Mara lends me a tile cutter until May 12.", "Until May 12."),
    ("We cook with gas, but want induction.", "Induction instead of gas."),
]
MORE = [
    ("The budget rose to 9,000 euros.", "9,000 euros from now on."),
    ("Ruth moved to Thursdays.", "Thursdays, then."),
    ("The oven arrives on March 3.", "On March 3."),
]
HOSTILE = "</observations><script>alert(1)</script> & \u202eevil"


def talk(thread, pairs):
    from datetime import timedelta

    from django.utils import timezone
    from pydantic_ai.messages import ModelResponse, TextPart

    from memory.messages import user_prompt
    from memory.services.append import append

    now = timezone.now() - timedelta(days=2)
    for prompt, answer in pairs:
        said = ModelResponse(parts=[TextPart(answer)], timestamp=now)
        append(thread.pk, [user_prompt(prompt, now), said], at=now)


def kitchen(resource, profile, ada):
    """Return a thread whose memory was observed, changed by people, condensed and observed anew."""
    from agents.services.thread import start
    from memory.models import Line
    from memory.services import operate
    from memory.services.edit import edit
    from memory.services.forget import forget
    from memory.services.look import look
    from memory.services.note import note
    from memory.services.pin import pin

    thread = start(resource, profile, title="Kitchen refit")
    for pairs in (SAID[:5], SAID[5:]):
        talk(thread, pairs)
        asyncio.run(operate.observe_now(thread.pk))
    view = look(thread.pk)
    record, lines = view.record, list(view.lines)
    edit(lines[0].pk, f"{lines[0].text}, VAT included", author=ada, reason="She said so.")
    pin(lines[1].pk, author=ada)
    forget(lines[-1].pk, author=ada, reason="Settled.")
    asyncio.run(operate.reflect_now(thread.pk))
    asyncio.run(asyncio.to_thread(operate.show_reflection, thread.pk))
    note(record.pk, HOSTILE, author=ada)
    talk(thread, MORE)
    asyncio.run(operate.observe_now(thread.pk))
    assert Line.objects.filter(observation__record=record).count() > 10
    return thread, record


def fail(record, thread):
    """Let a cycle have failed."""
    from datetime import timedelta

    from django.utils import timezone

    from memory.models import Cycle

    now = timezone.now()
    return Cycle.objects.create(
        record=record,
        lane=f"observer:{thread.pk}",
        kind="observe",
        thread=thread,
        status="failed",
        trigger="threshold",
        message_tokens=420,
        epoch=record.epoch,
        lease_expires_at=now,
        finished_at=now + timedelta(seconds=2),
        model="offline",
        attempt=3,
        error="The model answered with nothing that could be read.",
    )


def plain(resource, profile, title, *notes):
    """Return a thread with as many revisions as notes."""
    from agents.services.thread import start
    from memory.services.look import look
    from memory.services.note import note

    thread = start(resource, profile, title=title)
    for text in notes:
        note(look(thread.pk).record.pk, text)
    return thread


def make():
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from memory.models import Resource
    from tests.browser.world import make as make_base

    resource, profile = make_base()
    ada = get_user_model().objects.get(username="ada")
    thread, record = kitchen(resource, profile, ada)
    cycle = fail(record, thread)
    readable = Resource.objects.create(key="ben", name="Ben", time_zone="Europe/Berlin")
    ben = get_user_model().objects.create_user("ben", password="ben", first_name="Ben")
    ben.groups.add(Group.objects.create(name="viewers"))
    resource.members.add(ben)
    return {
        "kitchen": str(thread.pk),
        "record": str(record.pk),
        "cycle": str(cycle.pk),
        "empty": str(plain(resource, profile, "Nothing yet").pk),
        "one": str(plain(resource, profile, "One note", "Ada likes oak").pk),
        "live": str(plain(resource, profile, "Live", *(f"Note {n}" for n in range(30))).pk),
        "edited": str(plain(resource, profile, "Edited", "Ada likes oak", "Ada likes tea").pk),
        "readable": readable.key,
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    json.dump(make(), sys.stdout)
