import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import Turn
from agents.services.thread import start
from memory.messages import user_prompt
from memory.models import MemoryRecord, Revision, Thread
from memory.services.append import append
from memory.services.configure import configure
from memory.services.look import look
from tests.agents.studio.settings.pages import text_of, url

pytestmark = pytest.mark.django_db


def say(thread, words=60, times=1):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * words)], timestamp=now)
        append(thread.pk, [user_prompt("Go on.", now), answer], at=now)


def test_a_draft_is_shown_before_it_is_stored(member, thread):
    say(thread, times=3)

    answer = member.post(
        f"{url(thread)}preview", {"message_tokens": "100"}, headers={"HX-Request": "true"}
    )

    said = text_of(answer)
    assert "/ 100" in said
    assert "tokens will be observed at once, at no cost; the next turn waits." in said
    assert answer.content.decode().startswith("<hx-partial")
    assert not MemoryRecord.objects.exists()


def test_a_change_with_an_effect_is_stored_once_the_effect_was_shown(member, thread):
    say(thread, times=3)
    typed = {"message_tokens": "100"}

    asked = member.post(url(thread), typed)
    assert asked.status_code == 422
    assert "Nothing was saved yet." in asked.content.decode()
    assert not Revision.objects.exists()
    seen = re.search(r'name="seen" value="(\w+)"', asked.content.decode())[1]

    assert member.post(url(thread), {**typed, "seen": seen}).status_code == 302
    assert MemoryRecord.objects.get().config == {"message_tokens": 100}


def test_the_effect_of_another_draft_does_not_count_as_seen(member, thread):
    say(thread, times=3)
    asked = member.post(url(thread), {"message_tokens": "100"})
    seen = re.search(r'name="seen" value="(\w+)"', asked.content.decode())[1]

    assert member.post(url(thread), {"message_tokens": "90", "seen": seen}).status_code == 422


def test_an_agents_change_says_how_many_conversations_it_reaches(admin, resource, profile):
    for times in (4, 4, 0):
        say(start(resource, profile), times=times)

    answer = admin.post("/settings/agents/tester/", {"message_tokens": "100"})

    assert answer.status_code == 422
    assert "2 of its 3 newest conversations will be past the threshold" in text_of(answer)


def test_what_it_would_do_to_an_agents_conversations_is_read_in_few_statements(
    admin, resource, profile, django_assert_max_num_queries
):
    for _ in range(12):
        say(start(resource, profile), times=1)

    with django_assert_max_num_queries(40):
        admin.post("/settings/agents/tester/preview", {"message_tokens": "100"})


def test_the_page_is_read_in_few_statements(member, thread, django_assert_max_num_queries):
    say(thread, times=5)
    look(thread.pk)
    for tokens in range(700, 720):
        configure(thread.pk, {"message_tokens": tokens})

    with django_assert_max_num_queries(25):
        member.get(url(thread))


def test_sharing_says_what_it_does_before_it_does_it(member, thread, resource, profile):
    other = start(resource, profile)
    for each in (thread, other):
        say(each, times=5)
        look(each.pk)

    said = text_of(member.get(f"{url(thread)}scope/resource"))
    assert "2 conversations of Ada will share one memory" in said
    assert "tokens will be observed at once" in said
    assert MemoryRecord.objects.filter(closed_at=None).count() == 2

    member.post(f"{url(thread)}scope/resource")
    assert [r.scope for r in MemoryRecord.objects.filter(closed_at=None)] == ["resource"]
    assert "the memory shared by 2 conversations" in text_of(member.get(url(thread)))

    said = text_of(member.get(f"{url(thread)}scope/thread"))
    assert "2 conversations of Ada will have a memory each" in said


def test_memory_is_turned_off_and_on_with_its_effect_shown_first(member, thread):
    say(thread, times=2)
    look(thread.pk)

    said = text_of(member.get(f"{url(thread)}memory/off"))
    assert "the agent is sent the whole conversation" in said
    member.post(f"{url(thread)}memory/off")
    assert not Thread.objects.get().remembers
    page = text_of(member.get(url(thread)))
    assert "Memory is off" in page
    assert "Memory on → off" in page

    member.post(f"{url(thread)}memory/on")
    assert Thread.objects.get().remembers


def test_nothing_is_moved_while_an_answer_is_written(member, thread):
    look(thread.pk)
    Turn.objects.create(
        thread=thread,
        number=1,
        status="running",
        prompt="Hello",
        lease_token=uuid4(),
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )

    for path in ("memory/off", "scope/resource"):
        answer = member.post(url(thread) + path, follow=True)
        assert "An answer is being written." in answer.content.decode()
    assert Thread.objects.get().remembers
    assert MemoryRecord.objects.get().scope == "thread"


@pytest.mark.parametrize("path", ["scope/planet", "memory/maybe"])
def test_there_are_no_other_places_to_move_it(member, thread, path):
    assert member.get(url(thread) + path).status_code == 404
