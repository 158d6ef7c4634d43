import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents.studio.context.calls import MOST_MESSAGES, Call
from memory.ask import Reply
from memory.engine.parsing import BadOutput
from memory.models import Blob, Cycle, Line, MemoryRecord
from memory.services import observe
from memory.services.again import cancel
from memory.services.cycles import fail
from memory.services.forget import forget
from tests.fakes import Models
from tests.memory.services.play import buffer, condense, lapse, request, talk

pytestmark = pytest.mark.django_db


def html(client, cycle):
    answer = client.get(f"/context/calls/{cycle.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.django_db(transaction=True)
async def test_a_call_shows_what_was_asked_said_and_read(signed_in, thread):
    await sync_to_async(talk)(thread, 3)
    claimed = await sync_to_async(observe.claim)(thread.pk)
    assert await observe.run(claimed, resolve=Models())
    shown = await sync_to_async(html)(signed_in, await Cycle.objects.aget())
    assert "You are the Observer." in shown
    assert shown.count("Something was said in message 1 of its range") == 2
    assert "&lt;observations&gt;" in shown
    assert "messages 1–6" in shown


@pytest.fixture
def observed(thread):
    """Have a range observed, its reply kept."""
    talk(thread, 3)
    observation = buffer(thread)
    return observation.cycle


def test_the_lines_read_say_what_became_of_them(signed_in, thread, observed):
    shown = Call(observed)
    assert [written.fate for written in shown.lines] == ["waits"] * 6
    talk(thread, 4)
    request(thread)
    first = Line.objects.filter(since__isnull=False).order_by("ordinal")[0]
    forget(first.pk)
    fates = [written.fate for written in Call(observed).lines]
    assert fates[0] == "shown from revision 1, gone since 2"
    assert fates[1] == "shown since revision 1"
    assert "gone since 2" in html(signed_in, observed)


def test_the_messages_it_was_about_are_listed(observed):
    covered = Call(observed).covered
    assert [each.position for each in covered] == [1, 2, 3, 4, 5, 6]
    assert [each.who for each in covered][:2] == ["user", "assistant"]


def test_of_very_many_messages_the_first_are_listed(thread, observed):
    Cycle.objects.filter(pk=observed.pk).update(last_position=500)
    observed.refresh_from_db()
    assert Call(observed).uncounted == 500 - MOST_MESSAGES


def test_a_failed_call_says_why_and_shows_its_reply(signed_in, thread):
    talk(thread, 3)
    cycle = observe.claim(thread.pk).cycle
    error = BadOutput("holds no list of observations", "No idea.")
    error.reply = Reply("No idea.", "fake", 10, 2, None)
    fail(cycle, error)
    shown = html(signed_in, cycle)
    for text in ("holds no list of observations", "No idea.", "10 tokens", "not known"):
        assert text in shown
    assert "Nothing of this call became memory." in shown


def test_attempts_at_the_same_range_are_listed(signed_in, thread):
    talk(thread, 3)
    first = observe.claim(thread.pk).cycle
    fail(first, BadOutput("says nothing of these", ""))
    Cycle.objects.update(next_attempt_at=None)
    second = buffer(thread).cycle
    attempts = Call(second).attempts
    assert [attempt.key for attempt in attempts] == [str(first.pk), str(second.pk)]
    assert [attempt.current for attempt in attempts] == [False, True]
    assert "says nothing of these" in html(signed_in, second)
    assert second.attempt == 2


def test_a_running_call_and_an_interrupted_one_say_what_is_missing(signed_in, thread):
    talk(thread, 3)
    cycle = observe.claim(thread.pk).cycle
    shown = html(signed_in, cycle)
    assert "The request is kept once the call has ended." in shown
    assert "The model has not answered yet." in shown
    lapse(cycle)
    Cycle.objects.lapsed().retire_lapsed(reason="The process stopped.")
    assert "stopped before it could keep the request" in html(signed_in, cycle)


def test_a_cancelled_call_says_that_its_request_was_not_kept(signed_in, thread):
    talk(thread, 3)
    cycle = observe.claim(thread.pk).cycle
    cancel(cycle.pk)
    assert "was cancelled before its request was kept" in html(signed_in, cycle)


def test_a_text_that_is_not_kept_leaves_its_hash(signed_in, observed):
    Blob.objects.all().delete()
    shown = html(signed_in, observed)
    assert shown.count("The text is not kept any more; its hash is.") == 2
    assert observed.request_hash[:12] in shown


def test_a_reflection_says_what_it_was_made_of(signed_in, thread):
    for _ in range(30):
        talk(thread, 1)
        buffer(thread)
        request(thread)
        reflection = condense(thread)
        if reflection:
            break
    shown = html(signed_in, reflection.cycle)
    assert "Reflector call" in shown
    assert "made of" in shown
    assert "level" in shown


def test_what_is_not_theirs_does_not_exist(client, ben, observed):
    client.force_login(ben)
    assert client.get(f"/context/calls/{observed.pk}/").status_code == 404
    ben.groups.add(Group.objects.create(name="operators"))
    assert client.get(f"/context/calls/{observed.pk}/").status_code == 200


def test_a_call_takes_few_statements(signed_in, observed, django_assert_max_num_queries):
    with django_assert_max_num_queries(16):
        html(signed_in, observed)


def test_a_call_that_served_several_conversations_names_them(signed_in, resource, profile):
    from agents.services.thread import start

    profile.memory_options = {**profile.memory_options, "scope": "resource"}
    profile.save()
    one, two = start(resource, profile, title="One"), start(resource, profile, title="Two")
    talk(one, 3)
    talk(two, 3)
    claimed = observe.claim(one.pk)
    if len(claimed.shares) < 2:
        other = Cycle.objects.create(
            record=MemoryRecord.objects.get(),
            thread=two,
            lane="observer:two",
            kind="buffer",
            call=claimed.cycle.call,
            epoch=0,
            lease_expires_at="2026-03-02T10:00Z",
        )
        assert other.call == claimed.cycle.call
    shown = html(signed_in, Cycle.objects.get(thread=one))
    assert "The same call served other conversations" in shown
    assert "Two" in shown
