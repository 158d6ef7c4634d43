"""Make people, resources and threads in the database that DATABASE_URL names; print them as JSON.

Usage: python -m tests.fleet.world [--threads 4] [--resources 2] [--model offline]

Resource r has one member, person-r, who is signed in by the session printed. The threads are dealt
out to the resources in turn, every second resource has one memory for all of its threads.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib import import_module

INSTRUCTIONS = "You are a helpful assistant. Answer briefly."
#: Small enough that everything happens within a dozen messages.
OPTIONS = {"message_tokens": 400, "observation_tokens": 300}


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--resources", type=int, default=2)
    parser.add_argument("--model", default="")
    parser.add_argument("--options", type=json.loads, default=OPTIONS)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    print(json.dumps(_made(options)))


def _made(options: argparse.Namespace) -> list[dict[str, object]]:
    from django.conf import settings
    from django.contrib.auth import get_user_model

    from agents.models import AgentProfile
    from agents.services.thread import start
    from memory.models import Resource

    profiles = [
        AgentProfile.objects.create(
            slug=f"fleet-{scope}", name="Fleet", instructions=INSTRUCTIONS, model=options.model,
            memory_options={**options.options, "scope": scope},
        )
        for scope in ("thread", "resource")
    ]  # fmt: skip
    people = []
    for number in range(options.resources):
        user = get_user_model().objects.create_user(f"person-{number}")
        resource = Resource.objects.create(key=f"fleet-{number}", name=f"Fleet {number}")
        resource.members.add(user)
        ours = range(number, options.threads, options.resources)
        threads = [start(resource, profiles[number % 2]).pk for _ in ours]
        session = _session(import_module(settings.SESSION_ENGINE).SessionStore(), user)
        people.append({"session": session, "threads": [str(thread) for thread in threads]})
    return people


def _session(session: object, user: object) -> str:
    """Sign somebody in; return the key of the session."""
    from django.contrib import auth

    session[auth.SESSION_KEY] = str(user.pk)  # type: ignore[attr-defined, index]
    session[auth.BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"  # type: ignore[index]
    session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()  # type: ignore[attr-defined, index]
    session.save()  # type: ignore[attr-defined]
    return str(session.session_key)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
