"""Walk every address of the site as everybody: who may not, sees nothing and changes nothing."""

import re
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from agents.lab.models import Lab
from agents.models import AgentProfile, Turn
from agents.services.thread import start
from agents.tokens import make
from memory.models import Cycle, Line, MemoryRecord, Resource
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


#: What anybody may open without signing in.
OPEN = {"healthz", "readyz", "sign-in/", "sign-out/", "api/openapi.json"}
#: What names a thing of somebody's in an address.
THINGS = {"thread_id", "line_id", "record_id", "cycle_id", "key", "resource_key", "token_id"}
#: What people may do to themselves, whatever their role.
THEIR_OWN = {"sign-in/", "account/tokens/", "account/tokens/<uuid:token_id>/revoke"}
#: Forms that only compute: they answer with what would be.
ASKING = {"settings/<uuid:thread_id>/preview"}
#: What names its conversations in the query alone, and here names none.
OF_NONE = {"chat/undo"}
#: What forms are filled with, so that what is refused is not refused for being empty alone.
FORM = {"text": "SECRET changed", "name": "Mine", "action": "delete", "right": "erase", "q": "bees"}
NOT_FOUND, NO_RIGHT, NO_METHOD = 404, 403, 405
#: What an empty form or body may be told before anybody looks at whose the thing is.
EMPTY = {400, 422}


def addresses(resolver=None, before=""):
    """Yield every address outside the administration, as it is written in the routes."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if route.startswith("admin/"):
            continue
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from addresses(pattern, route)


ADDRESSES = sorted(set(addresses()))


@pytest.fixture
def world(profile):
    """Make a resource of somebody's, with one of everything that can be named."""
    resource = Resource.objects.create(key="theirs", name="Theirs")
    owner = User.objects.create_user("owner")
    resource.members.add(owner)
    thread = start(resource, profile)
    play.talk(thread, 6)
    Turn.objects.create(thread=thread, number=1, prompt="SECRET", status=Turn.Status.DONE)
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
        "to": "resource",
        "extension": "md",
        "operation": "observe",
        "name": "observe",
    }


def filled(route, world):
    """Return an address with the world's things in the places of its parameters."""
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(world.get(found[1], 1)), route)


def things_in(route):
    return THINGS & set(re.findall(r"<(?:\w+:)?(\w+)>", route))


def somebody(*groups, member=False):
    user = User.objects.create_user("somebody")
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in groups])
    if member:
        Resource.objects.get(key="theirs").members.add(user)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@contextmanager
def undone():
    """Take back whatever is done inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def answers(client, world, method):
    """Yield each address with the answer to it; what it does is undone."""
    for route in ADDRESSES:
        if route == "sign-out/":
            continue  # whoever is signed out asks as nobody from then on
        with undone():
            yield (
                route,
                getattr(client, method)(
                    filled(route, world), FORM | world | {"thread": world["thread_id"]}
                ),
            )


METHODS = pytest.mark.parametrize("method", ["get", "post"])


def text_of(response):
    return "" if response.streaming else response.content.decode(errors="replace")


@METHODS
def test_without_signing_in_nothing_is_served(world, method):
    for route, response in answers(Client(raise_request_exception=False), world, method):
        if route in OPEN:
            continue
        to_sign_in = response.status_code == 302 and "/sign-in/" in response.url
        assert to_sign_in or response.status_code in (401, NOT_FOUND, NO_METHOD), (route, response)


@METHODS
def test_what_is_somebody_elses_is_not_there(world, method):
    for route, response in answers(somebody(), world, method):
        assert response.status_code < 500, (route, response)
        assert "SECRET" not in text_of(response), route
        if things_in(route):
            assert response.status_code in {NOT_FOUND, NO_METHOD} | EMPTY, (route, response)


def test_a_viewer_changes_nothing(world):
    for route, response in answers(somebody("viewers", member=True), world, "post"):
        if route in THEIR_OWN | ASKING | OF_NONE:
            continue
        refused = response.status_code in {NO_RIGHT, NOT_FOUND, NO_METHOD} | EMPTY
        assert refused, (route, response.status_code, getattr(response, "url", ""))


@METHODS
@pytest.mark.parametrize("group", ["viewers", "nobody", "operators", "admins"])
def test_no_address_fails_whoever_asks(world, method, group):
    for route, response in answers(somebody(group, member=True), world, method):
        assert response.status_code < 500, (route, response)


def test_operators_read_everything_but_talk_nowhere(world):
    client = somebody("operators")
    assert client.get(filled("chat/<uuid:thread_id>/", world)).status_code == 200
    sent = client.post(filled("chat/<uuid:thread_id>/send", world), {"text": "Hi"})
    assert sent.status_code == NO_RIGHT


def test_agents_are_described_by_administrators_alone(world):
    before = AgentProfile.objects.count()
    for group in ("viewers", "nobody", "operators"):
        client = somebody(group, member=True)
        assert client.post("/agents/new/", {"name": "Mine"}).status_code == NO_RIGHT
        User.objects.get(username="somebody").delete()
    assert AgentProfile.objects.count() == before
