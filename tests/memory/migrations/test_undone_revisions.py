from importlib import import_module

import pytest
from django.apps import apps

from memory.models import MemoryRecord, Revision

pytestmark = pytest.mark.django_db
migration = import_module("memory.migrations.0012_undone_revisions")


def test_what_was_undone_is_told_from_what_was_gone_back_to(thread):
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, scope="thread")

    def revision(number, reason):
        counts = {"tokens_before": 0, "tokens_after": 0}
        return Revision.objects.create(
            record=record, number=number, cause="restore", trigger="revision 3", reason=reason, **counts
        )

    rows = [revision(5, "Undid revision 4"), revision(6, ""), revision(7, "Undid revision 2")]

    def triggers():
        for row in rows:
            row.refresh_from_db()
        return [row.trigger for row in rows]

    migration.name_what_was_undone(apps, None)
    assert triggers() == ["undo of 4", "revision 3", "revision 3"]

    migration.name_where_it_went_back(apps, None)
    assert triggers() == ["revision 3"] * 3
