"""Create the people, resources, agents and threads of the demo."""

from __future__ import annotations

from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from memory import llm
from memory.models import Resource, Thread
from memory.recordings import Recording, read

from ..models import AgentProfile
from ..services.replay import KEY, Report, Source, begin, replay, replays

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
    return User.objects.exists() or AgentProfile.objects.exists()


@transaction.atomic
def create() -> None:
    """Create people, resources and agents, and an empty thread for the conversation.

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
    ada, profile = Resource.objects.get(key="ada"), AgentProfile.objects.get(slug="demo")
    begin(
        _source(),
        resource=ada,
        profile=profile,
        title=_recording().title,
        options={"message_tokens": 2_000, "observation_tokens": 2_400},
    )


def unfinished() -> Thread | None:
    """Return the thread of the shipped conversation if some of it is still to be replayed."""
    for thread in Thread.objects.filter(resource__key="ada", agent="demo"):
        if replays(thread, _source()) and not thread.metadata[KEY].get("finished"):
            return thread
    return None


async def converse(thread: Thread, report: Report) -> None:
    """Replay the shipped conversation into its thread, or what is missing of it, at once."""
    await replay(thread.pk, _recording(), resolve=partial(llm.resolve, delay=0), report=report)


@cache
def _recording() -> Recording:
    return read(CONVERSATION)[0]


@cache
def _source() -> Source:
    return Source(_recording().key, sha256(CONVERSATION.read_bytes()).hexdigest())


def _person(username: str, *, staff: bool = False) -> User:
    people = User.objects
    person, made = people.get_or_create(
        username=username,
        defaults={"first_name": username.title(), "is_staff": staff, "is_superuser": staff},
    )
    if made:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    return person
