from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from memory.models import Cycle, MemoryRecord
from memory.models.cycle import observer_lane

pytestmark = pytest.mark.django_db
migration = import_module("memory.migrations.0011_cancelled_cycles")


def test_cycles_told_by_their_error_get_a_status_and_their_attempt_back(thread):
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, scope="thread")
    now = timezone.now()
    ended = {
        "record": record,
        "thread": thread,
        "kind": "buffer",
        "lane": observer_lane(thread.pk),
        "epoch": 0,
        "status": "failed",
        "lease_expires_at": now,
        "finished_at": now,
        "next_attempt_at": now,
        "interrupted": True,
        "attempt": 1,
    }
    cancelled = Cycle.objects.create(**ended, error="Cancelled by ada. Nothing was written.")
    lapsed = Cycle.objects.create(**ended, error="The process that ran this stopped.")

    def stored(cycle):
        cycle.refresh_from_db()
        return cycle.status, cycle.interrupted, cycle.attempt

    migration.name_cancelled(apps, None)
    assert stored(cancelled) == ("cancelled", False, 2)
    assert stored(lapsed) == ("failed", True, 1)

    migration.unname_cancelled(apps, None)
    assert stored(cancelled) == ("failed", True, 1)
