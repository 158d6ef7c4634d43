import pytest

from memory.models import MemoryRecord, Revision
from memory.services.change import Refused
from memory.services.configure import configure
from memory.services.go_back import go_back, options_at
from memory.services.look import look
from memory.services.remember import remember

pytestmark = pytest.mark.django_db


@pytest.fixture
def record(thread):
    look(thread.pk)
    for changes in (
        {"message_tokens": 700},
        {"message_tokens": 800, "instruction": "Names matter."},
        {"message_tokens": None},
    ):
        configure(thread.pk, changes)
    return MemoryRecord.objects.get()


def test_each_revision_says_what_it_changed(record):
    changes = Revision.objects.order_by("number").values_list("options", flat=True)

    assert list(changes) == [
        {"message_tokens": {"after": 700}},
        {
            "instruction": {"after": "Names matter."},
            "message_tokens": {"before": 700, "after": 800},
        },
        {"message_tokens": {"before": 800}},
    ]


def test_options_are_known_as_they_were_at_every_revision(record):
    assert [options_at(record, number) for number in range(4)] == [
        {},
        {"message_tokens": 700},
        {"message_tokens": 800, "instruction": "Names matter."},
        {"instruction": "Names matter."},
    ]
    with pytest.raises(Refused, match="no revision 4"):
        options_at(record, 4)


def test_going_back_is_a_change_like_any_other(thread, record, ada):
    number = go_back(thread.pk, record, 1, author=ada)

    record.refresh_from_db()
    assert record.config == {"message_tokens": 700}
    made = Revision.objects.get(record=record, number=number)
    assert (made.author, made.reason, made.cause) == (ada, "As at revision 1", "config")
    assert options_at(record, 3) == {"instruction": "Names matter."}


def test_what_turned_memory_off_is_no_option(thread, record):
    remember(thread.pk, False)
    remember(thread.pk, True)
    record.refresh_from_db()

    assert options_at(record, 4) == {"instruction": "Names matter."}
