import pytest

from agents.services.thread import start
from memory.models import MemoryRecord, Resource, Thread
from memory.services.activate import rename as rename_by_observers
from memory.services.change import Refused
from memory.services.look import look
from memory.services.recall.reach import Reach
from memory.services.shelve import archive, hide, rename, show, unarchive
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def fresh(thread):
    return Thread.objects.get(pk=thread.pk)


def suggested(thread, title):
    from memory.models import Observation

    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    return Observation.objects.create(
        record=record,
        thread=thread,
        kind="observation",
        first_position=1,
        last_position=2,
        thread_title=title,
    )


def test_a_title_given_by_a_person_stays_whatever_observers_suggest(thread):
    rename(thread.pk, "  Oak   and\nbeech ")
    rename_by_observers([suggested(thread, "Kitchen refit")])
    assert (fresh(thread).title, fresh(thread).title_pinned) == ("Oak and beech", True)


def test_an_empty_title_lets_observers_name_it_again(thread):
    rename(thread.pk, "Oak")
    rename(thread.pk, " ")
    assert fresh(thread).title == "Oak"
    rename_by_observers([suggested(thread, "Kitchen refit")])
    assert fresh(thread).title == "Kitchen refit"


def test_a_title_that_does_not_fit_is_refused_with_its_length(thread):
    with pytest.raises(Refused, match="201 characters; at most 200"):
        rename(thread.pk, "x" * 201)


def test_a_hidden_conversation_is_not_renamed_and_its_members_do_not_see_it(thread, ada):
    hide(thread.pk)
    with pytest.raises(Refused, match="gone"):
        rename(thread.pk, "Oak")
    assert not Thread.objects.of(ada).exists()


def test_what_is_hidden_or_archived_can_be_shown_again(thread, ada):
    hide(thread.pk)
    assert show(thread.pk)
    archive(thread.pk)
    assert fresh(thread).archived_at is not None
    assert Thread.objects.of(ada).exists()
    unarchive(thread.pk)
    assert (fresh(thread).archived_at, fresh(thread).deleted_at) == (None, None)


def test_what_is_erased_already_is_not_shown_again(thread):
    thread_id = thread.pk
    thread.delete()
    assert not show(thread_id)


def test_a_hidden_conversation_is_told_to_no_other_and_recalled_by_none(profile, ada):
    team = Resource.objects.create(key="team", name="Team", scope="resource")
    one, other = start(team, profile), start(team, profile)
    play.talk(one, 1)
    play.talk(other, 1)
    assert [tail.thread for tail in look(one.pk).others] == [other.pk]
    reach = Reach(fresh(one), "resource")
    assert Thread.objects.filter(reach.threads()).count() == 2

    hide(other.pk)

    assert not look(one.pk).others
    assert Thread.objects.filter(reach.threads()).get() == one
    assert not look(one.pk, keep=False).others
