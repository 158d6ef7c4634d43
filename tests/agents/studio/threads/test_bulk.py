from urllib.parse import unquote

import pytest

from agents.models import Turn
from agents.services import discard
from agents.services.fork import fork
from agents.services.send import send
from agents.services.thread import start
from agents.studio.threads.fate import fates_of
from memory.models import Line, Message, Thread
from memory.services.look import look
from memory.services.operate import show_reflection
from tests.agents.studio.threads.listed import SCRIPT, bulk, observed, titles
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def test_several_are_exported_in_one_file(signed_in, named):
    chosen = [named("Oak"), named("Beech")]
    answer = bulk(signed_in, "md", *chosen, headers={})
    text = answer.content.decode()
    assert "# Oak\n" in text
    assert "# Beech\n" in text
    assert "2-conversations.md" in answer["Content-Disposition"]


def test_archived_conversations_are_listed_when_asked_for_alone(signed_in, named):
    thread = named("Oak")
    assert bulk(signed_in, "archive", thread).status_code == 204
    assert titles(signed_in) == []
    assert titles(signed_in, state="archived") == ["Oak"]
    bulk(signed_in, "unarchive", thread)
    assert titles(signed_in) == ["Oak"]


def test_without_a_tick_it_is_said_what_to_do(signed_in, named):
    named("Oak")
    answer = bulk(signed_in, "archive")
    assert answer.status_code == 422
    assert "Tick at least one" in answer.content.decode()


def test_nobody_works_on_what_they_may_not_see(stranger, thread):
    assert bulk(stranger, "archive", thread).status_code == 422
    assert Thread.objects.get().archived_at is None


def test_observing_with_nothing_to_observe_says_why(signed_in, named):
    answer = bulk(signed_in, "observe", named("Oak"))
    assert answer.status_code == 422
    assert "nothing to observe" in answer.content.decode()


def test_deleting_can_be_undone(signed_in, named):
    thread = named("Oak")
    send(thread.pk, "Hello")
    answer = bulk(signed_in, "delete", thread)
    assert unquote(answer["X-Toast"]) == "Deleted 1 conversation."
    assert titles(signed_in) == []
    assert signed_in.get(f"/chat/{thread.pk}/").status_code == 404
    assert Turn.objects.get().status == "withdrawn"

    assert signed_in.post(answer["X-Undo"], headers=SCRIPT).status_code == 204
    assert titles(signed_in) == ["Oak"]


def test_what_names_no_conversation_does_not_exist(signed_in):
    assert signed_in.post("/chat/undo?thread=x").status_code == 404
    assert signed_in.post("/chat/bulk", {"action": "archive", "thread": "x"}).status_code == 404


def test_nobody_brings_back_what_they_could_not_see(stranger, thread):
    discard.discard(thread.pk)
    stranger.post(f"/chat/undo?thread={thread.pk}")
    assert Thread.objects.get().deleted_at is not None


def test_what_was_deleted_is_erased_by_the_sweep_and_its_undoing_says_so(signed_in, named):
    thread = observed(named("Oak"))
    kept = observed(named("Beech"))
    answer = bulk(signed_in, "delete", thread)
    assert discard.sweep() == 0

    Thread.objects.filter(pk=thread.pk).update(deleted_at=thread.created_at - discard.GRACE)
    assert discard.sweep() == 1

    assert Thread.objects.get() == kept
    assert set(Message.objects.values_list("thread", flat=True)) == {kept.pk}
    undone = signed_in.post(answer["X-Undo"], headers=SCRIPT)
    assert undone.status_code == 422
    assert "erased for good" in undone.content.decode()


def test_a_running_answer_keeps_the_sweep_off_until_it_has_ended(named):
    thread = named("Oak")
    turn = Turn.objects.create(
        thread=thread,
        number=1,
        prompt="",
        status="running",
        lease_token=thread.pk,
        lease_expires_at=thread.created_at,
    )
    discard.discard(thread.pk)
    turn.refresh_from_db()
    assert turn.stop_requested
    Thread.objects.update(deleted_at=thread.created_at - discard.GRACE)
    assert discard.sweep() == 0
    Turn.objects.update(status="stopped", finished_at=thread.created_at)
    assert discard.sweep() == 1


def test_what_others_share_is_erased_only_by_typing_the_title(signed_in, team, profile):
    one, other = start(team, profile, title="Budget"), start(team, profile, title="Garden")
    play.talk(other, 1)
    observed(one)
    assert Line.objects.filter(observation__thread=one, until=None).exists()

    asked = bulk(signed_in, "delete", one)
    text = asked.content.decode()
    assert asked.status_code == 422
    assert "memory that other conversations share" in text
    assert "14 messages" in text
    assert bulk(signed_in, "delete", one, typed="budget").status_code == 422
    assert Thread.objects.get(pk=one.pk).deleted_at is None

    done = bulk(signed_in, "delete", one, typed="Budget")
    assert unquote(done["X-Toast"]) == "Erased 1 conversation."
    assert Thread.objects.get() == other
    owners = set(Line.objects.values_list("observation__thread", flat=True))
    assert owners == {other.pk}


def test_what_was_condensed_since_counts_as_shared_too(team, profile):
    one, other = start(team, profile, title="Budget"), start(team, profile, title="Garden")
    play.talk(other, 1)
    observed(one)
    assert fates_of([one])[0].shared > 0
    play.condense(one)
    show_reflection(one.pk)
    assert not Line.objects.filter(observation__thread=one, until=None).exists()
    mine, theirs = fates_of([one, other])
    assert mine.shared > 0
    assert "they lose what it says" in mine.words
    assert theirs.thread == other.pk


def test_without_a_script_the_page_comes_back_and_asks(signed_in, team, profile):
    one = start(team, profile, title="Budget")
    play.talk(start(team, profile), 1)
    observed(one)
    asked = bulk(signed_in, "delete", one, headers={}, resource="team")
    assert asked.status_code == 422
    assert "Type <b>Budget</b>" in asked.content.decode()
    assert bulk(signed_in, "archive", one, headers={}).status_code == 302


def test_a_fork_of_a_deleted_conversation_stays_whole(signed_in, named):
    thread = observed(named("Oak"))
    child = fork(thread.pk, 14, title="Beech")
    discard.destroy(thread.pk)
    assert Message.objects.filter(thread=child).count() == 14
    assert len(look(child.pk).lines) > 0
    assert not Message.objects.filter(text="").exists()
