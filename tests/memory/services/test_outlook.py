import pytest
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.services.thread import start
from memory.config import merged
from memory.messages import user_prompt
from memory.models import MemoryRecord, Revision, Thread
from memory.services.append import append
from memory.services.change import Refused
from memory.services.look import look
from memory.services.outlook import outlook, outlook_in_scope

pytestmark = pytest.mark.django_db

SMALL = {"message_tokens": 600, "observation_tokens": 200}


def say(thread, words, times=1):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * words)], timestamp=now)
        append(thread.pk, [user_prompt("Go on.", now), answer], at=now)


def rows():
    return MemoryRecord.objects.count(), Revision.objects.count(), Thread.objects.count()


def test_what_is_due_now_is_foreseen_without_a_change(thread):
    say(thread, 60)

    found = outlook(thread.pk)

    assert found.limits.observe == 600
    assert 60 <= found.pending < 120
    assert found.due == ()


def test_a_lower_threshold_is_foreseen_as_an_observation_at_once(thread):
    say(thread, 60, times=4)
    look(thread.pk)
    before = rows()

    found = outlook(thread.pk, merged(SMALL, {"message_tokens": 100}))

    assert found.limits.ceiling == 120
    assert found.tokens("observe") > 60
    assert found.tokens("observe", "buffer") == sum(each.tokens for each in found.due)
    assert rows() == before


def test_looking_ahead_makes_no_record(thread):
    say(thread, 60)

    outlook(thread.pk)

    assert rows() == (0, 0, 1)


def test_nothing_is_foreseen_for_a_thread_that_does_not_remember(thread):
    Thread.objects.update(remembers=False)

    assert outlook(thread.pk) is None
    assert outlook_in_scope(thread.pk, "resource") is None


def test_a_shared_memory_is_foreseen_with_all_conversations_and_not_made(thread, resource, profile):
    other = start(resource, profile)
    for each in (thread, other):
        say(each, 60, times=5)
        look(each.pk)
    before = rows()
    alone = outlook(thread.pk)

    together = outlook_in_scope(thread.pk, "resource")

    assert together.pending == alone.pending + outlook(other.pk).pending
    assert together.tokens("observe") > 0
    assert alone.tokens("observe") == 0
    assert rows() == before
    assert look(thread.pk).record.scope == "thread"


def test_a_scope_that_cannot_be_changed_is_refused(thread):
    look(thread.pk)

    def busy():
        raise Refused("An answer is being written.")

    with pytest.raises(Refused, match="being written"):
        outlook_in_scope(thread.pk, "resource", fence=busy)
    with pytest.raises(Refused, match="no scope"):
        outlook_in_scope(thread.pk, "planet")
