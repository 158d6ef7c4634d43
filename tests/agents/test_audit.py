from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.test import RequestFactory

from agents.access import leave_traces, resource_or_404, thread_or_404
from agents.audit import AuditEntry, note_act, note_reading
from agents.services.thread import start
from memory.models import Cycle, Resource
from tests.agents.clients import client_of
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def request_of(user, path="/chat/x/"):
    request = RequestFactory().get(path)
    request.user = user
    return request


def test_reading_is_noted_once_an_hour_for_each_person_and_resource(ada, ben, resource):
    for path in ("/chat/1/", "/memory/1/"):
        note_reading(request_of(ben, path), resource)
    note_reading(request_of(ada), resource)

    entries = list(AuditEntry.objects.values_list("actor_name", "action", "resource_key", "place"))
    assert sorted(entries) == [
        ("ada", "read", "ada", "/chat/x/"),
        ("ben", "read", "ada", "/chat/1/"),
    ]


def test_reading_again_costs_one_query(ben, resource, django_assert_num_queries):
    note_reading(request_of(ben), resource)

    with django_assert_num_queries(1):
        note_reading(request_of(ben), resource)


def test_the_next_hour_is_noted_anew(ben, resource):
    note_reading(request_of(ben), resource)
    entry = AuditEntry.objects.get()
    AuditEntry.objects.update(hour=entry.hour.replace(year=2020))

    note_reading(request_of(ben), resource)

    assert AuditEntry.objects.count() == 2


def test_every_act_is_noted_with_its_numbers(ben, resource):
    thread = uuid4()
    for _ in range(2):
        note_act(
            request_of(ben, "/admin/x/"),
            "erase",
            resource=resource,
            thread=thread,
            reason=" Asked for ",
            numbers={"messages": 3},
        )

    assert AuditEntry.objects.count() == 2
    entry = AuditEntry.objects.first()
    assert (entry.reason, entry.numbers, entry.thread) == ("Asked for", {"messages": 3}, thread)
    assert str(entry) == "ben: erase ada"


def test_an_entry_outlives_who_did_it_and_whose_it_was(ben, resource):
    note_act(request_of(ben), "erase", resource=resource)
    ben.delete()
    resource.delete()

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name, entry.resource_key) == (None, "ben", "ada")


@pytest.fixture
def operator(ben):
    ben.groups.add(Group.objects.create(name="operators"))
    return ben


def test_staff_who_open_what_is_not_theirs_leave_a_trace(operator, thread):
    thread_or_404(request_of(operator), thread.pk)
    resource_or_404(request_of(operator), thread.resource.key)

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.resource_key) == (operator, "read", "ada")


def test_staff_who_are_shown_several_at_once_leave_a_trace_of_each(operator, ada, thread):
    other = Resource.objects.create(key="other", name="Other")
    leave_traces(request_of(operator), [thread.resource_id, other.pk, other.pk])
    leave_traces(request_of(ada), [other.pk])

    entries = AuditEntry.objects.values_list("actor_name", "resource_key")
    assert sorted(entries) == [("ben", "ada"), ("ben", "other")]


def test_what_staff_find_or_take_away_leaves_a_trace(operator, thread):
    play.say(thread, play.question("My code is 4711."))
    visitor = client_of(operator)
    for path, data in (
        ("/find/?q=4711", None),
        ("/chat/?resource=*&q=4711", None),
        ("/chat/bulk", {"action": "md", "thread": thread.pk}),
    ):
        AuditEntry.objects.all().delete()
        answer = visitor.get(path) if data is None else visitor.post(path, data)
        assert b"4711" in answer.content, path
        assert AuditEntry.objects.get().resource_key == "ada", path


def test_a_call_of_a_memory_leaves_a_trace_even_where_it_has_no_thread(operator, thread):
    play.talk(thread, 6)
    play.buffer_all(thread)
    Cycle.objects.update(thread=None)
    page = client_of(operator).get(f"/context/calls/{Cycle.objects.first().pk}/")
    assert b"/timeline/None/" not in page.content
    assert AuditEntry.objects.get().resource_key == "ada"


def test_what_is_deleted_or_discarded_is_noted(ada, resource, profile, thread):
    temporary = start(resource, profile, temporary=True)
    mine = client_of(ada)
    mine.post("/chat/bulk", {"action": "delete", "thread": thread.pk})
    mine.post(f"/chat/{temporary.pk}/discard")

    acts = AuditEntry.objects.values_list("action", "thread")
    assert set(acts) == {("delete", thread.pk), ("discard", temporary.pk)}


def test_nobody_leaves_a_trace_in_what_is_theirs(operator, ada, thread):
    thread.resource.members.add(operator)
    for person in (operator, ada):
        thread_or_404(request_of(person), thread.pk)

    assert not AuditEntry.objects.exists()
