import pytest

from memory.config import MemoryOptions
from memory.models import MemoryRecord, Revision, Thread
from memory.services.change import Refused
from memory.services.configure import changed, configure
from memory.services.look import look

pytestmark = pytest.mark.django_db


def record(thread):
    return look(thread.pk).record


def test_a_changed_option_holds_from_the_next_look_on(thread, ada):
    before = record(thread)

    number = configure(thread.pk, {"message_tokens": 700}, author=ada, reason=" small tests ")

    view = look(thread.pk)
    assert view.options.message_tokens == 700
    assert view.options.observation_tokens == 200
    assert view.revision == number == before.revision + 1
    assert view.record.epoch == before.epoch
    made = Revision.objects.get(record=view.record, number=number)
    assert (made.cause, made.author, made.reason) == ("config", ada, "small tests")
    assert made.tokens_before == made.tokens_after


def test_changes_add_up_and_none_takes_one_back(thread):
    configure(thread.pk, {"message_tokens": 700, "instruction": "Names matter."})
    configure(thread.pk, {"activate_after_idle": "5m", "message_tokens": None})

    assert record(thread).config == {"instruction": "Names matter.", "activate_after_idle": 300}
    assert look(thread.pk).options.message_tokens == 600


def test_what_is_wrong_only_with_what_holds_already_changes_nothing(thread):
    configure(thread.pk, {"buffer_tokens": 500})
    before = record(thread)

    with pytest.raises(Refused, match="buffer_tokens = 500: must be less than 400"):
        configure(thread.pk, {"message_tokens": 400, "thread_title": True})

    after = record(thread)
    assert (after.config, after.revision) == (before.config, before.revision)
    assert Revision.objects.filter(record=after).count() == 1


def test_every_wrong_option_is_named(thread):
    with pytest.raises(Refused, match=r"parallel_calls = 0: .*; wait_seconds = -1: "):
        configure(thread.pk, {"parallel_calls": 0, "wait_seconds": -1})
    with pytest.raises(Refused, match="did you mean message_tokens"):
        configure(thread.pk, {"message_token": 5})


def test_the_scope_is_not_changed_in_passing(thread):
    with pytest.raises(Refused, match="scope = 'resource': cannot be set here"):
        configure(thread.pk, {"scope": "resource"})


@pytest.mark.parametrize(
    "changes",
    [
        {"instruction": "a\0b"},
        {"observer_settings": {"extra_body": {"a\0": [1]}}},
        {"extract": [{"name": "Mood", "instructions": "\ud800"}]},
    ],
)
def test_what_no_database_can_store_is_refused(thread, changes):
    with pytest.raises(Refused, match="characters that cannot be stored"):
        configure(thread.pk, changes)


def test_a_reason_has_its_limit(thread):
    with pytest.raises(Refused, match="1,001 characters"):
        configure(thread.pk, {"message_tokens": 700}, reason="x" * 1001)


@pytest.mark.parametrize("changes", [{}, {"instruction": None}, {"message_tokens": 700}])
def test_what_changes_nothing_makes_no_revision(thread, changes):
    configure(thread.pk, {"message_tokens": 700})
    before = record(thread).revision

    assert configure(thread.pk, changes) == before
    assert record(thread).revision == before


def test_options_broken_by_hand_can_be_mended(thread):
    MemoryRecord.objects.filter(pk=record(thread).pk).update(config={"message_tokens": -1})

    with pytest.raises(Refused, match="message_tokens = -1"):
        configure(thread.pk, {"thread_title": True})
    configure(thread.pk, {"message_tokens": None})

    assert record(thread).config == {}


def test_what_is_stored_means_the_same_when_it_is_read_again():
    given = {
        "retrieval": True,
        "continuation_hints": False,
        "activate_after_idle": {"default": "auto", "groq": False},
        "observer_model": {"up_to": {36_000: "offline"}},
        "observe_attachments": ["image/*"],
        "buffer_tokens": False,
        "previous_observer_tokens": False,
    }
    stored = changed({}, {}, given)

    assert MemoryOptions.model_validate(stored) == MemoryOptions.model_validate(given)
    assert changed({}, stored, {"retrieval": False})["retrieval"] is None


def test_a_conversation_without_memory_is_refused_with_what_to_do(thread):
    Thread.objects.filter(pk=thread.pk).update(remembers=False)
    with pytest.raises(Refused, match="turn its memory on first"):
        configure(thread.pk, {"message_tokens": 700})
    assert not MemoryRecord.objects.exists()
