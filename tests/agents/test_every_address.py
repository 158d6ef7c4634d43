"""Walk every address of the site as everybody, and hold the answers against a table."""

import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver
from django.utils import timezone
from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

from agents.lab.models import Lab
from agents.models import AgentProfile, RequestSnapshot, Turn
from agents.services.thread import start
from agents.tokens import make
from memory.models import (
    Cycle,
    Line,
    Media,
    MemoryRecord,
    Message,
    Observation,
    Resource,
    Revision,
    Thread,
)
from memory.services.note import note
from omsite import watch
from omsite.metrics.meter import Meter
from omsite.metrics.rows import Rows
from tests.memory.services import play

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def measured():
    """Measure, so that the figures have an address."""
    made = Meter()
    made.registry.register(Rows())
    before = watch.use(made)
    yield
    watch.use(before)


#: Who asks: the groups somebody is in, and whether they are a member of the resource.
PEOPLE = {
    "nobody": None,
    "stranger": ((), False),
    "viewer": (("viewers",), True),
    "member": ((), True),
    "operator": (("operators",), False),
    "admin": (("admins",), False),
}
METHODS = ("get", "post", "put", "patch", "delete")
#: What is answered, in a letter; all else is done or shown.
LETTERS = {401: "s", 403: "x", 404: "-", 405: "m", 400: "?", 422: "?"}
TABLE = Path(__file__).parent / "every_address.txt"
#: What forms are filled with, so that what is refused is not refused for being empty alone.
FORM = {
    **{"text": "SECRET changed", "name": "Mine", "action": "delete", "right": "erase", "q": "bees"},
    **{"resource": "theirs", "position": 2, "revision": 1, "first": 1, "second": 1, "message": "1"},
}
#: What no address may change for who may not: nobody's rows are in any other table.
KEPT = (
    *(AgentProfile, Line, Media, MemoryRecord, Message, Observation, Resource, Revision, Thread),
    *(Turn, User),
)


def addresses(resolver=None, before=""):
    """Yield every address, as it is written in the routes."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from addresses(pattern, route)


EVERY = sorted(set(addresses()))
ADDRESSES = [route for route in EVERY if not route.startswith("admin/")]
#: Without what takes all there is no page for, and what whoever signed in may do: sign out.
BACKSTAGE = [
    route
    for route in EVERY
    if route.startswith("admin/") and "(?P<" not in route and route != "admin/logout/"
]


@pytest.fixture
def world(profile):
    """Make a resource of somebody's, with one of everything that can be named."""
    resource = Resource.objects.create(key="theirs", name="Theirs")
    owner = User.objects.create_user("owner")
    resource.members.add(owner)
    thread = start(resource, profile)
    play.talk(thread, 6)
    files = [BinaryContent(b"SECRET %d" % n, media_type="text/plain") for n in range(2)]
    play.say(thread, ModelRequest(parts=[UserPromptPart(["SECRET", *files], timestamp=play.AT)]))
    turn = Turn.objects.create(
        thread=thread, number=1, prompt="SECRET", status=Turn.Status.FAILED, error="SECRET"
    )
    RequestSnapshot.objects.create(turn=turn, step=1, revision=1, blocks=[], total=9)
    record = MemoryRecord.objects.get_or_create(resource=resource, thread=thread)[0]
    note(record.pk, "SECRET")
    cycle = Cycle.objects.create(
        record=record,
        lane="reflector",
        kind=Cycle.Kind.REFLECT,
        status=Cycle.Status.DONE,
        epoch=0,
        lease_expires_at=timezone.now(),
        started_at=timezone.now(),
        finished_at=timezone.now(),
    )
    token, _ = make(owner, "script")
    return {
        "thread_id": thread.pk,
        "line_id": Line.objects.get(text="SECRET").pk,
        "record_id": record.pk,
        "cycle_id": cycle.pk,
        "lab_id": Lab.objects.create(name="Trial").pk,
        "token_id": token.pk,
        "key": "theirs",
        "resource_key": "theirs",
        "slug": profile.slug,
        "username": "owner",
        "to": "resource",
        "extension": "md",
        "operation": "observe",
        "name": "observe",
        "position": 13,
        "turn_number": 1,
        **{"number": 1, "step": 1, "revision": 1, "what": "pin"},
    }


def filled(route, world):
    """Return an address with the world's things in the places of its parameters."""
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(world[found[1]]), route)


def table():
    """Return what is written of each address: a letter for each of the people, by method."""
    lines = TABLE.read_text().splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    cells = [(row.split()[0], row.split()[1:]) for row in rows]
    return {"" if route == "(home)" else route: letters for route, letters in cells}


def methods(route):
    """Return what a browser sends; to the API, what a program does as well."""
    return METHODS if route.startswith("api/") else METHODS[:2]


def somebody(name):
    """Return a client of one of the people."""
    client = Client(raise_request_exception=False)
    if PEOPLE[name] is None:
        return client
    groups, member = PEOPLE[name]
    user = User.objects.create_user(name)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    if member:
        Resource.objects.get(key="theirs").members.add(user)
    client.force_login(user)
    return client


@contextmanager
def undone():
    """Take back whatever is done inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def ask(client, route, method, world, besides=()):
    """Ask for an address with a filled form, or with the same as JSON."""
    form = {name: str(value) for name, value in (FORM | world).items()}
    form |= {"thread": form["thread_id"], "agent": form["slug"], **dict(besides)}
    json = {"content_type": "application/json"} if route.startswith("api/") else {}
    if method == "get":
        return client.get(filled(route, world), form)
    numbers = {name: int(form[name]) for name in ("position", "revision")} if json else {}
    return getattr(client, method)(filled(route, world), form | numbers, **json)


def letter(response):
    """Say in a letter how something was answered."""
    if response.status_code == 302 and "/sign-in/" in response.url:
        return "s"
    return LETTERS.get(response.status_code, "o" if response.status_code < 500 else "!")


def walk(client, world):
    """Yield each address and method with the answer; what it does is undone."""
    for route in ADDRESSES:
        if route == "sign-out/":
            continue  # whoever is signed out asks as nobody from then on
        for method in methods(route):
            with undone():
                yield route, method, ask(client, route, method, world)


def kept():
    """Return all rows that matter."""
    return [sorted(model.objects.values_list(), key=str) for model in KEPT]


def text_of(response):
    return "" if response.streaming else response.content.decode(errors="replace")


def test_every_address_has_a_row_and_every_row_an_address():
    assert set(table()) == set(ADDRESSES) - {"sign-out/"}


def test_every_parameter_names_something_there_is(world):
    named = {name for route in ADDRESSES for name in re.findall(r"<(?:\w+:)?(\w+)>", route)}
    assert named <= set(world)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEOPLE)
def test_everybody_is_answered_as_the_table_says(world, name):
    said, column = table(), list(PEOPLE).index(name)
    differing = {
        f"{method} {route}": found
        for route, method, response in walk(somebody(name), world)
        if (found := letter(response)) != said[route][methods(route).index(method)][column]
    }
    assert differing == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nobody", "stranger", "viewer"])
def test_who_may_not_changes_nothing_and_is_told_nothing(world, name):
    client = somebody(name)
    before = kept()
    for route, method, response in walk(client, world):
        if method != "get":
            assert kept() == before, (method, route)
        if name != "viewer":
            assert "SECRET" not in text_of(response), (method, route)


def test_nothing_is_done_for_another_site(world):
    """An admin's browser sends the cookie of their session there, and no token of a form."""
    client = Client(enforce_csrf_checks=True)
    client.cookies = somebody("admin").cookies
    before = kept()
    answered = {
        f"{method} {route}": response.status_code
        for route in ADDRESSES
        for method in methods(route)
        if method != "get"
        and (response := ask(client, route, method, world)).status_code not in (403, 404, 405)
    }
    assert answered == {}
    assert kept() == before


def neighbour(profile):
    """Return somebody at home in a resource of their own, and what is named there."""
    client, mine = somebody("stranger"), Resource.objects.create(key="mine", name="Mine")
    mine.members.add(User.objects.get(username="stranger"))
    thread = start(mine, profile)
    play.talk(thread, 6)
    Turn.objects.create(thread=thread, number=1, prompt="Mine", status=Turn.Status.FAILED)
    record = MemoryRecord.objects.get_or_create(resource=mine, thread=thread)[0]
    note(record.pk, "Mine")
    places = {"thread_id": thread.pk, "record_id": record.pk, "resource_key": "mine", "key": "mine"}
    return client, places | {"line_id": Line.objects.get(text="Mine").pk}


def theirs_kept():
    """Return all rows of the resource that a neighbour has nothing to do with."""
    theirs = Resource.objects.get(key="theirs")
    places = {
        **dict.fromkeys((Thread, MemoryRecord), "resource"),
        **dict.fromkeys((Message, Turn), "thread__resource"),
        **dict.fromkeys((Observation, Revision, Cycle), "record__resource"),
        **{Line: "observation__record__resource", Resource: "pk", User: "resources"},
    }
    rows = (model.objects.filter(**{place: theirs.pk}) for model, place in places.items())
    return [sorted(found.values_list(), key=str) for found in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "own", [("thread_id",), ("record_id",), ("line_id",), ("key", "resource_key")], ids=" ".join
)
def test_nothing_of_others_is_reached_from_what_is_ones_own(world, profile, own):
    """What a path names is the neighbour's own as far as said; all else, forms included, is not."""
    client, places = neighbour(profile)
    named = {name: places[name] for name in own}
    form = dict.fromkeys(("line", "onto", "undo"), str(world["line_id"])) | {"text": "Changed"}
    form |= dict.fromkeys(("thread", "for", "of", "where"), str(world["thread_id"]))
    before = theirs_kept()
    for route in ADDRESSES:
        if not any(f"{name}>" in route for name in own):
            continue
        for method in methods(route):
            with undone():
                response = ask(client, route, method, world | named, form)
                assert theirs_kept() == before, (method, route)
            assert "SECRET" not in text_of(response), (method, route)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nobody", "stranger", "viewer", "member", "operator"])
def test_the_administration_is_for_administrators(world, name):
    client = somebody(name)
    for route in BACKSTAGE:
        address = "/" + re.sub(r"<(?:\w+:)?(\w+)>", "1", route)
        for method in METHODS[:2]:
            with undone():
                response = getattr(client, method)(address)
            assert response.status_code in (302, 403, 404, 405), (method, route)
            if response.status_code == 302:
                assert response.url.startswith(("/sign-in/", "/admin/login/")), (method, route)
