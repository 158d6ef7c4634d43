import pytest
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from memory.messages import user_prompt
from memory.models import Cycle, MemoryRecord, Revision, Thread
from memory.services.append import append
from memory.services.change import Refused
from memory.services.due import claim
from memory.services.look import look
from memory.services.note import note
from memory.services.remember import remember
from memory.verify import verify

pytestmark = pytest.mark.django_db


def say(thread, times):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * 60)], timestamp=now)
        append(thread.pk, [user_prompt("Go on.", now), answer], at=now)


def test_a_conversation_is_forgotten_about_and_remembered_again_with_all_it_had(thread, ada):
    record = look(thread.pk).record
    note(record.pk, "Oak costs 90 euros", author=ada)

    remember(thread.pk, False, author=ada, reason="Private from here on")
    assert look(thread.pk) is None

    remember(thread.pk, True, author=ada)
    assert [line.text for line in look(thread.pk).lines] == ["Oak costs 90 euros"]

    made = Revision.objects.filter(record=record, cause="config").order_by("number")
    assert [(r.author, r.options["remembers"]["after"]) for r in made] == [
        (ada, False),
        (ada, True),
    ]
    assert made[0].reason == "Private from here on"


def test_turning_off_what_is_off_changes_nothing(thread):
    look(thread.pk)

    remember(thread.pk, True)

    assert not Revision.objects.exists()


def test_what_is_under_way_is_given_up(thread):
    say(thread, 3)
    assert claim(thread.pk).claimed
    running = Cycle.objects.get()
    assert running.status == "running"

    remember(thread.pk, False)

    running.refresh_from_db()
    assert (running.status, running.error) == (
        "discarded",
        "Memory was turned off for this conversation.",
    )


def test_nothing_changes_while_the_fence_is_up(thread):
    def busy():
        raise Refused("An answer is being written.")

    with pytest.raises(Refused):
        remember(thread.pk, False, fence=busy)

    assert Thread.objects.get().remembers


def test_what_was_remembered_before_is_no_violation(thread):
    say(thread, 3)
    look(thread.pk)
    claim(thread.pk)
    remember(thread.pk, False)

    assert verify().clean

    MemoryRecord.objects.get().revisions.filter(cause="config").update(options={})
    assert [each.invariant for each in verify().violations][:1] == ["record.remembers"]
