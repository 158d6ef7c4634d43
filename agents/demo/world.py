"""Create the people, resources, agents and threads of the demo."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth import get_user_model
from django.db import transaction

from memory.models import Resource, Thread

from ..models import AgentProfile
from ..services.thread import start

CONVERSATION = Path(__file__).parent / "kitchen.jsonl"

ZONE = "Europe/Berlin"
RESOURCES = {
    "ada": ("Ada", ("ada",)),
    "ben": ("Ben", ("ben",)),
    "team": ("Ada and Ben’s team", ("ada", "ben")),
}
INSTRUCTIONS = (
    "You are a helpful, attentive assistant. Be concrete and brief. Use what you remember of "
    "the user, and call a tool when the exact wording or the time matters."
)
AGENTS: dict[str, dict[str, object]] = {
    "demo": {
        "name": "Quick demo",
        "about": "Observes from 800 tokens on and reflects from 600, so that a dozen messages "
        "show everything. Real agents use 30,000 and 40,000.",
        "memory_options": {"message_tokens": 800, "observation_tokens": 600},
    },
    "standard": {
        "name": "Standard",
        "about": "Observes from 30,000 tokens on and reflects from 40,000.",
    },
    "forgetful": {
        "name": "No memory",
        "about": "The same chat with memory off: the whole conversation is sent each time.",
        "remembers": False,
    },
}


def exists() -> bool:
    """Tell whether there is a demo world, or any world, already."""
    return get_user_model().objects.exists() or AgentProfile.objects.exists()


@transaction.atomic
def create() -> Thread:
    """Create the demo world and return its first thread, which is still empty.

    People have no password: they sign in with one click where that is allowed, or with one
    that ``manage.py changepassword`` gives them.
    """
    for slug, fields in AGENTS.items():
        AgentProfile.objects.get_or_create(
            slug=slug,
            defaults={"instructions": INSTRUCTIONS, "tools": ["current_time", "recall"], **fields},
        )
    _person("admin", staff=True)
    for key, (name, members) in RESOURCES.items():
        resource, _ = Resource.objects.get_or_create(
            key=key, defaults={"name": name, "time_zone": ZONE}
        )
        resource.members.add(*(_person(member) for member in members))
    profile = AgentProfile.objects.get(slug="demo")
    return start(Resource.objects.get(key="ada"), profile, title="Kitchen refit")


def _person(username: str, *, staff: bool = False) -> object:
    people = get_user_model().objects
    person, made = people.get_or_create(
        username=username,
        defaults={"first_name": username.title(), "is_staff": staff, "is_superuser": staff},
    )
    if made:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    return person
