"""Who may call what: every operation there is, by everybody there is."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from agents.api.site import schema
from agents.audit import AuditEntry
from agents.models import Turn
from agents.tokens import Token

from .conftest import Caller

pytestmark = pytest.mark.django_db

READS, WRITES, WORKS = "reads", "writes", "works"

#: Every operation with a path that its own thing stands in, what it takes, and what kind it is.
CALLS = [
    ("GET", "/resources/{resource}", None, READS),
    ("GET", "/threads?resource={resource}", None, READS),
    ("POST", "/threads", {"resource": "{resource}", "agent": "demo"}, WRITES),
    ("GET", "/threads/{thread}", None, READS),
    ("PATCH", "/threads/{thread}", {"title": "Hives"}, WRITES),
    ("DELETE", "/threads/{thread}", None, WRITES),
    ("POST", "/threads/{thread}/undelete", {}, WRITES),
    ("POST", "/threads/{thread}/fork", {"position": 4}, WRITES),
    ("GET", "/threads/{thread}/export?format=jsonl", None, READS),
    ("GET", "/threads/{thread}/messages", None, READS),
    ("GET", "/threads/{thread}/messages/1", None, READS),
    ("POST", "/threads/{thread}/messages", {"text": "Hello"}, WRITES),
    ("GET", "/threads/{thread}/turns", None, READS),
    ("GET", "/threads/{thread}/turns/1", None, READS),
    ("GET", "/threads/{thread}/turns/1/stream", None, READS),
    ("GET", "/threads/{thread}/turns/1/requests", None, READS),
    ("POST", "/threads/{thread}/turns/2/stop", {}, WRITES),
    ("POST", "/threads/{thread}/turns/3/retry", {}, WRITES),
    ("GET", "/threads/{thread}/memory", None, READS),
    ("GET", "/threads/{thread}/memory/lines", None, READS),
    ("GET", "/threads/{thread}/memory/observations", None, READS),
    ("POST", "/threads/{thread}/memory/notes", {"text": "Honey"}, WRITES),
    ("POST", "/threads/{thread}/memory/restore", {"revision": 1}, WRITES),
    ("POST", "/threads/{thread}/memory/undo", {"revision": 3}, WRITES),
    ("POST", "/threads/{thread}/memory/clear", {}, WRITES),
    ("GET", "/lines/{line}", None, READS),
    ("GET", "/lines/{line}/sources", None, READS),
    ("PATCH", "/lines/{line}", {"text": "Wax is cheap"}, WRITES),
    ("POST", "/lines/{line}/pin", {}, WRITES),
    ("POST", "/lines/{pinned}/unpin", {}, WRITES),
    ("POST", "/lines/{line}/forget", {}, WRITES),
    ("POST", "/lines/{forgotten}/unforget", {}, WRITES),
    ("GET", "/threads/{thread}/revisions", None, READS),
    ("GET", "/threads/{thread}/revisions/compare?first=1&second=3", None, READS),
    ("GET", "/threads/{thread}/revisions/2", None, READS),
    ("GET", "/threads/{thread}/cycles", None, READS),
    ("GET", "/cycles/{cycle}", None, READS),
    ("POST", "/threads/{thread}/operations/activate", {}, WORKS),
    ("GET", "/threads/{thread}/context?text=Hello", None, READS),
]
NAMES = [f"{method} {path}" for method, path, _, _ in CALLS]
#: What lists only what is one's own, whoever asks.
OF_ONESELF = {("get", "/api/v1/resources"), ("get", "/api/v1/agents")}
#: What takes a file instead of JSON is tried below.
OF_FILES = ("post", "/api/v1/threads/{thread_id}/files")


@pytest.fixture
def places(world, resource):
    """Return what stands for the braces in paths."""
    from memory.services.forget import forget
    from memory.services.note import note
    from memory.services.pin import pin

    Turn.objects.create(thread=world.thread, number=2, prompt="Wait")
    Turn.objects.create(thread=world.thread, number=3, prompt="Again", status=Turn.Status.STOPPED)
    (pinned,) = pin(note(world.record.pk, "Bees sleep").pk)
    forgotten = note(world.record.pk, "Honey is sold out")
    forget(forgotten.pk)
    return {
        "resource": resource.key,
        "thread": world.thread.pk,
        "line": world.note.pk,
        "pinned": pinned.pk,
        "forgotten": forgotten.pk,
        "cycle": world.rows["a"].cycle_id,
    }


def filled(value, places):
    if isinstance(value, dict):
        return {name: filled(each, places) for name, each in value.items()}
    return value.format(**places) if isinstance(value, str) else value


def made(places, method, path, body):
    return method, filled(path, places), filled(body, places)


def shape(path):
    """Return a path with braces in place of what it names, as the schema has it."""
    steps = path.partition("?")[0].split("/")
    return "/".join("*" if step.isdecimal() or step.startswith("{") else step for step in steps)


def test_every_operation_is_called_here():
    """An operation that is added must be tried by everybody."""
    known = {
        (method, shape(path.removeprefix("/api/v1")))
        for path, methods in schema()["paths"].items()
        for method in methods
        if (method, path) not in {*OF_ONESELF, OF_FILES}
    }
    operations = ("observe", "buffer", "activate", "reflect", "compact", "finalize")
    called = {
        (method.lower(), shape("/".join("{}" if s in operations else s for s in path.split("/"))))
        for method, path, _, _ in CALLS
    }
    assert called == known


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
def test_a_member_may(member, places, call):
    response = member.call(*made(places, *call[:3]))

    assert response.status_code in (200, 201, 202, 204), response.content


def answers(caller, places, calls=CALLS):
    """Return what calls that are not carried out answer, by operation: the status and why."""
    return {f"{call[0]} {call[1]}": caller.problem(*made(places, *call[:3])) for call in calls}


def otherwise(answers, status, words=""):
    """Return the answers that have another status, or do not say some words."""
    return {
        name: told for name, told in answers.items() if told[0] != status or words not in told[1]
    }


def test_for_a_stranger_there_is_nothing(stranger, places):
    assert otherwise(answers(stranger, places), 404) == {}
    assert not AuditEntry.objects.exists()


def test_a_viewer_reads_and_no_more(viewer, places):
    reads = [call for call in CALLS if call[3] == READS]
    read = {call[1]: viewer.call(*made(places, *call[:3])).status_code for call in reads}
    assert read == dict.fromkeys(read, 200)

    rest = [call for call in CALLS if call[3] != READS]
    assert otherwise(answers(viewer, places, rest), 403, "no right to") == {}


@pytest.mark.parametrize(
    "call", [call for call in CALLS if call[3] != WRITES], ids=lambda call: " ".join(call[:2])
)
def test_an_operator_reads_and_works_anywhere_and_leaves_a_trace(operator, places, call):
    assert operator.call(*made(places, *call[:3])).status_code in (200, 202)
    assert AuditEntry.objects.filter(actor_name="ben", resource_key="ada").exists()


def test_an_operator_changes_nothing(operator, places):
    writes = [call for call in CALLS if call[3] == WRITES]
    assert otherwise(answers(operator, places, writes), 403) == {}


def test_nobody_comes_in_without_a_token(world, places):
    assert otherwise(answers(Caller(None), places), 401, "/account/tokens/") == {}


@pytest.mark.parametrize(
    "changes",
    [{"revoked_at": timezone.now()}, {"expires_at": timezone.now() - timedelta(seconds=1)}],
    ids=["revoked", "expired"],
)
def test_a_token_that_ended_lets_nobody_in(member, places, changes):
    Token.objects.update(**changes)

    assert otherwise(answers(member, places), 401) == {}


def test_a_bad_token_is_not_made_up_for_by_a_session(ada, world):
    caller = Caller(None, Authorization="Bearer om_wrong")
    caller.client.force_login(ada)

    assert caller.problem("GET", "/resources")[0] == 401


def test_a_session_reads(ada, world):
    caller = Caller(None)
    caller.client.force_login(ada)

    assert caller.ok("GET", "/resources")["items"][0]["key"] == "ada"


def test_a_session_changes_nothing_without_its_csrf_token(ada, world):
    caller = Caller(None)
    caller.client = Client(enforce_csrf_checks=True)
    caller.client.force_login(ada)
    path = f"/lines/{world.note.pk}"

    assert caller.problem("PATCH", path, {"text": "Other"})[0] == 403

    caller.client.cookies["csrftoken"] = "a" * 32
    caller.headers["X-CSRFToken"] = "a" * 32
    assert caller.ok("PATCH", path, {"text": "Other"})["text"] == "Other"


def test_a_token_needs_no_csrf_token(member, world):
    member.client = Client(enforce_csrf_checks=True)

    assert member.ok("PATCH", f"/lines/{world.note.pk}", {"text": "Other"})["text"] == "Other"


def attach(caller, thread):
    return caller.client.post(
        f"/api/v1/threads/{thread.pk}/files",
        {"file": SimpleUploadedFile("offer.txt", b"Oak, 40 mm")},
        headers=caller.headers,
    )


def test_a_file_is_attached_by_members_alone(member, stranger, viewer, operator, world):
    taken = attach(member, world.thread)

    assert (taken.status_code, taken.json()["name"]) == (201, "offer.txt")
    refused = [attach(each, world.thread).status_code for each in (stranger, viewer, operator)]
    assert refused == [404, 403, 403]
    assert attach(Caller(None), world.thread).status_code == 401


def test_a_file_is_sent_by_its_token(member, world):
    token = attach(member, world.thread).json()["token"]
    given = {"text": "", "files": [token]}

    turn = member.ok("POST", f"/threads/{world.thread.pk}/messages", given)

    assert Turn.objects.get(number=turn["number"]).attachments[0]["name"] == "offer.txt"


def test_agents_are_listed_for_everybody_who_comes_in(stranger, world):
    assert [each["slug"] for each in stranger.ok("GET", "/agents")] == ["demo"]
    assert Caller(None).problem("GET", "/agents")[0] == 401
