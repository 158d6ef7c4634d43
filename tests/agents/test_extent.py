from datetime import timedelta

import pytest
from django.utils import timezone

from agents.extent import threads_of
from agents.models import Turn
from agents.services.thread import start
from memory.models import MemoryRecord, Thread
from tests.agents.test_page import ran

pytestmark = pytest.mark.django_db


def test_a_list_says_of_each_thread_what_is_running_in_it_the_newest_first(thread, profile):
    now = timezone.now()
    Turn.objects.create(
        thread=thread, number=1, status="running", prompt="Hi", lease_token=thread.pk,
        lease_expires_at=now,
    )  # fmt: skip
    garden = start(thread.resource, profile, title="The garden")
    record = MemoryRecord.objects.create(resource=thread.resource, thread=garden)
    ran(record, status="running")
    Thread.objects.filter(pk=garden.pk).update(last_active_at=now + timedelta(hours=1))

    listed = [(t.pk, t.title, t.answering, t.cycle_kind) for t in threads_of(thread.resource_id)]

    assert listed == [
        (garden.pk, "The garden", False, "buffer"),
        (thread.pk, "New conversation", True, None),
    ]


def test_threads_that_are_archived_or_deleted_or_of_the_lab_are_not_listed(thread, profile):
    now = timezone.now()
    for gone in ({"archived_at": now}, {"deleted_at": now}, {"is_lab": True}):
        Thread.objects.filter(pk=start(thread.resource, profile).pk).update(**gone)

    assert [t.pk for t in threads_of(thread.resource_id)] == [thread.pk]
