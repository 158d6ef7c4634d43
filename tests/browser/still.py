"""Serve a world in which everything is at once: run as a program, with the server's environment.

No background work is done, so that what fails, runs or waits stays as it is.
"""

import os
import sys
from datetime import timedelta
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.utils import timezone  # noqa: E402
from pydantic_ai.messages import ModelResponse, TextPart  # noqa: E402

from agents.models import AgentProfile, Turn  # noqa: E402
from agents.services.thread import start  # noqa: E402
from memory.messages import user_prompt  # noqa: E402
from memory.models import Cycle  # noqa: E402
from memory.services.append import append  # noqa: E402
from memory.services.configure import configure  # noqa: E402
from memory.services.look import look  # noqa: E402
from omsite.asgi import application  # noqa: E402
from omsite.ending import EndingServer  # noqa: E402
from tests.browser.world import make  # noqa: E402

SOON = timedelta(minutes=30)


def say(thread, times, words=60):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * words)], timestamp=now)
        append(thread.pk, [user_prompt("Go on, please.", now), answer], at=now)


def turn(thread, number, status, **fields):
    now = timezone.now()
    running = {"lease_token": uuid4(), "lease_expires_at": now + SOON, "started_at": now}
    fields |= running if status == "running" else {"finished_at": now}
    Turn.objects.create(thread=thread, number=number, status=status, prompt="Go on.", **fields)


def cycle(thread, status, **fields):
    now = timezone.now()
    given = {
        "record": look(thread.pk).record,
        "lane": f"observer:{thread.pk}",
        "kind": "buffer",
        "thread": thread,
        "epoch": 0,
        "lease_expires_at": now + SOON,
        "finished_at": None if status == "running" else now,
    }
    Cycle.objects.create(status=status, **{**given, **fields})


def fill(resource, profile):
    """Begin conversations in every state there is."""
    ada = get_user_model().objects.get(username="ada")
    kitchen = start(resource, profile, title="Kitchen refit")
    say(kitchen, 3)
    used = {"requests": 3, "input_tokens": 48_000, "output_tokens": 2_100}
    turn(kitchen, 1, "done", usage=used)
    cycle(kitchen, "done", input_tokens=6_100, output_tokens=400, cost=0, model="offline")
    configure(kitchen.pk, {"message_tokens": 900}, author=ada, reason="More room to think")
    configure(kitchen.pk, {"observation_tokens": 700, "instruction": "Prices matter."}, author=ada)
    lisbon = start(resource, profile, title="Trip to Lisbon")
    say(lisbon, 2)
    cycle(lisbon, "failed", error="The provider limits how often the model may be asked.")
    turn(lisbon, 1, "interrupted", error="The process that answered stopped.")
    garden = start(
        resource, profile, title="A garden with a title so long that it hardly fits a row"
    )
    say(garden, 12)
    taxes = start(resource, profile, title="Taxes")
    say(taxes, 3)
    turn(taxes, 1, "running")
    cycle(taxes, "running", message_tokens=216)
    quiet = start(resource, AgentProfile.objects.get(slug="forgetful"), title="Nothing kept")
    say(quiet, 1)


def people_and_agents():
    """Add an administrator, and agents of which one is set wrong."""
    get_user_model().objects.create_user("admin", first_name="Admin", is_superuser=True)
    AgentProfile.objects.create(
        slug="forgetful",
        name="No memory",
        about="The same chat with memory off.",
        instructions="Be brief.",
        model="offline",
        remembers=False,
    )
    AgentProfile.objects.create(
        slug="tiered",
        name="Tiered",
        about="Observes with a small model what is short, and with a large one what is long.",
        instructions="Be brief.",
        model="openai:gpt-5-mini",
        tools=["current_time", "recall"],
        memory_options={
            "observer_model": {"up_to": {"8000": "openai:gpt-5-nano", "60000": "openai:gpt-5-mini"}}
        },
    )
    AgentProfile.objects.create(
        slug="broken",
        name="Broken",
        instructions="Be brief.",
        model="gpt-5",
        memory_options={"buffer_tokens": 50_000},
    )


def main(port, kind):
    resource, profile = make()
    if kind == "full":
        people_and_agents()
        fill(resource, profile)
    EndingServer(application=application, endpoints=[f"tcp:port={port}:interface=127.0.0.1"]).run()


if __name__ == "__main__":
    main(int(sys.argv[-1]), sys.argv[1])
