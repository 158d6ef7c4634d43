"""Say every string in a chat, have it observed, write it wherever a person can write."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from agents.models import AgentProfile
from agents.services.replay import Source, begin, replay
from agents.services.thread import start
from agents.tokens import make
from memory.models import Cycle, MemoryRecord, Resource
from memory.recordings import Recorded, Recording
from memory.services.edit import edit
from memory.services.note import note
from memory.services.shelve import rename
from tests.agents.test_every_address import ADDRESSES, filled
from tests.hostile.judge import Page, plain

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OPTIONS = {"message_tokens": 300, "observation_tokens": 400}
#: What answers with something else than a page.
NO_PAGES = ("healthz", "readyz", "sign-out/", "api/v1/", "metrics")
#: What can be searched.
SEARCHED = ("find", "memory/<uuid:thread_id>", "context/", "chat/")
LISTS = (
    *("memory/resource", "memory/thread", "memory/message", "memory/memoryrecord"),
    *("memory/observation", "memory/line", "memory/revision", "memory/cycle"),
    *("agents/turn", "agents/agentprofile"),
)


def recorded(strings):
    """Return a recording in which the user says each string and the assistant repeats it."""
    messages = []
    for number, text in enumerate(strings):
        at = START + timedelta(minutes=2 * number)
        said = ModelRequest(parts=[UserPromptPart(text, timestamp=at)])
        answer = ModelResponse(parts=[TextPart(text or "Nothing.")], timestamp=at)
        messages += [Recorded(at, said, f"u{number}"), Recorded(at, answer, f"a{number}")]
    return Recording("hostile", "Hostile", "Europe/Berlin", tuple(messages))


def admin():
    """Return a new superuser, who may open every page."""
    return User.objects.create_superuser(f"admin-{uuid4().hex[:8]}")


def plant(strings, owner):
    """Return what the strings were written into, by the names of parameters of addresses."""
    worst = next((each for each in strings if "<" in each), strings[0])[:100]
    resource = Resource.objects.create(key=f"hostile-{uuid4().hex[:8]}", name=worst)
    resource.members.add(owner)
    profile = AgentProfile.objects.create(
        slug=f"hostile-{uuid4().hex[:8]}",
        name=worst,
        instructions="\n".join(strings).replace("\x00", ""),
        model="offline",
        memory_options=OPTIONS,
    )
    talk = recorded([each for each in strings if each.strip()])
    thread = begin(Source(uuid4().hex, ""), resource=resource, profile=profile, title="Hostile")
    async_to_sync(replay)(thread.pk, talk)
    rename(thread.pk, worst)
    record = MemoryRecord.objects.get(thread=thread)
    for each in strings:
        if each.strip():
            note(record.pk, each, thread_id=thread.pk, author=owner)
    line = note(record.pk, "To be edited.", thread_id=thread.pk, author=owner)
    edit(line.pk, worst, author=owner, reason=worst)
    token, _ = make(owner, worst)
    cycle = Cycle.objects.filter(thread=thread).first() or Cycle.objects.first()
    start(resource, profile, title=worst)
    return {
        "thread_id": thread.pk,
        "username": owner.username,
        "line_id": line.pk,
        "record_id": record.pk,
        "cycle_id": cycle.pk if cycle else uuid4(),
        "token_id": token.pk,
        "key": resource.key,
        "resource_key": resource.key,
        "slug": profile.slug,
        "to": "resource",
        "extension": "md",
        "operation": "observe",
        "name": "observe",
        "lab_id": uuid4(),
        "what": "pin",
        **dict.fromkeys(("position", "number", "turn_number", "step", "revision"), 1),
    }


def walk(client, world, strings):
    """Yield the address of every page that can be opened, with the page as it was read."""
    query = {"q": next((each for each in strings if "<" in each), strings[0]).replace("\x00", "")}
    routes = [each for each in ADDRESSES if not each.startswith(NO_PAGES)]
    places = [(filled(each, world), {}) for each in routes]
    places += [(filled(each, world), query) for each in routes if each.startswith(SEARCHED)]
    places += [(f"/admin/{each}/", {}) for each in ("", *LISTS)]
    record = world["record_id"]
    places += [(f"/admin/memory/memoryrecord/{record}/change/", {})]
    for place, asked in places:
        answer = client.get(place.replace("//", "/"), asked)
        if answer.status_code == 200 and "text/html" in answer.get("Content-Type", ""):
            html = answer.content.decode()
            yield place + ("?q" if asked else ""), Page(html, admin=place.startswith("/admin/"))


def faults(client, world, strings):
    """Return what is wrong with any page, and which strings no chat or memory page shows."""
    found, shown = [], {}
    for place, page in walk(client, world, strings):
        found += [f"{place}: {problem}" for problem in page.problems]
        shown[place] = page.text
    chat = shown.get(f"/chat/{world['thread_id']}/", "")
    memory = shown.get(f"/memory/{world['thread_id']}/", "")
    for each in strings:
        if (said := plain(each)) and said not in chat:
            found.append(f"the chat does not show {said!r}")
        if said and said not in memory:
            found.append(f"the memory page does not show {said!r}")
    return found, len(shown)
