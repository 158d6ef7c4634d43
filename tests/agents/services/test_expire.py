from datetime import timedelta

import pytest
from django.utils import timezone

from agents import tasks
from agents.models import AgentProfile, AuditEntry, RequestSnapshot, SignInFailure, Turn
from agents.om.verify import check
from agents.services.erase import erase_resource, erase_thread
from agents.services.expire import expire
from agents.services.thread import start
from memory import media
from memory.models import Blob, Cycle, Media, Message, Thread
from memory.models.blob import digest
from memory.services.change import Refused
from tests.agents.om_commands import om
from tests.memory.services.editing import beekeeping
from tests.memory.services.play import talk

pytestmark = pytest.mark.django_db

NOW = timezone.now()
DAY = timedelta(days=1)
EVER = dict.fromkeys(("requests", "calls", "audit", "temporary", "conversations"), 0)


@pytest.fixture
def keep(settings):
    """Set for how many days what is kept; all that is not named is kept for ever."""

    def keep(**days):
        settings.KEPT_DAYS = EVER | days

    keep()
    return keep


def went(**options):
    return dict(+expire(at=NOW, **options))


def text(words, age):
    Blob.objects.keep([words])
    Blob.objects.filter(hash=digest(words)).update(kept_at=NOW - age * DAY)
    return digest(words)


def request(thread, number, age, *texts):
    turn, _ = Turn.objects.get_or_create(
        thread=thread,
        number=number,
        defaults={"status": "done", "first_position": 1, "finished_at": NOW, "prompt": ""},
    )
    blocks = [{"kind": "memory", "source": "", "tokens": 1, "hash": each} for each in texts]
    return RequestSnapshot.objects.create(
        turn=turn, step=1, revision=1, blocks=blocks, total=1, created_at=NOW - age * DAY
    )


def call(record, age, asked, answered):
    at = NOW - age * DAY
    return Cycle.objects.create(
        record=record,
        lane="reflector",
        kind=Cycle.Kind.REFLECT,
        status=Cycle.Status.FAILED,
        epoch=0,
        lease_expires_at=at,
        started_at=at,
        finished_at=at,
        request_hash=asked,
        reply_hash=answered,
    )


def texts():
    return set(Blob.objects.values_list("text", flat=True))


def aged(thread, age):
    Thread.objects.filter(pk=thread.pk).update(last_active_at=NOW - age * DAY)
    return thread


def test_the_texts_of_old_requests_go_and_their_numbers_stay(keep, thread):
    keep(requests=30)
    shared = text("Instructions", 90)
    request(thread, 1, 40, text("Old memory", 40), shared)
    request(thread, 2, 5, text("New memory", 5), shared)

    assert went() == {"texts of requests and calls": 1}
    assert texts() == {"Instructions", "New memory"}
    assert list(RequestSnapshot.objects.values_list("total", flat=True)) == [1, 1]


def test_what_a_young_call_was_asked_stays_though_an_old_one_was_asked_the_same(keep, resource):
    keep(calls=30)
    record = beekeeping(resource).record
    Blob.objects.all().delete()
    same = text("Asked twice", 60)
    old = call(record, 60, same, text("Old reply", 60))
    call(record, 3, same, text("New reply", 3))

    assert went() == {"texts of requests and calls": 1}
    assert texts() == {"Asked twice", "New reply"}
    old.refresh_from_db()
    assert old.reply_hash == digest("Old reply")


def test_a_text_of_an_old_request_stays_while_a_call_is_kept_that_says_it(keep, thread, resource):
    keep(requests=30)
    same = text("Said in both", 60)
    request(thread, 1, 60, same)
    call(beekeeping(resource).record, 60, same, "")
    assert went() == {}


def test_a_text_that_nothing_names_goes_once_nobody_can_be_about_to_name_it(keep, thread):
    text("Left behind", 2)
    text("About to be named", 0)
    assert went() == {"texts of requests and calls": 1}
    assert texts() == {"About to be named"}


def test_kept_for_ever_nothing_goes(keep, thread, resource):
    request(thread, 1, 900, text("Old", 900))
    call(beekeeping(resource).record, 900, text("Older", 900), "")
    AuditEntry.objects.create(actor_name="root", action="read", at=NOW - 900 * DAY)
    aged(start(resource, AgentProfile.objects.get(), temporary=True), 900)
    assert went() == {}


def test_temporary_conversations_go_after_their_time(keep, resource, profile):
    keep(temporary=30)
    old = aged(start(resource, profile, temporary=True), 31)
    talk(old, 2)
    aged(old, 31)
    fresh = aged(start(resource, profile, temporary=True), 29)
    remembered = aged(start(resource, profile), 31)

    assert went() == {"temporary conversations": 1}
    assert set(Thread.objects.all()) == {fresh, remembered}
    assert not Message.objects.exists()


def test_where_the_agent_has_no_memory_a_conversation_is_not_temporary(keep, resource, profile):
    keep(temporary=30)
    AgentProfile.objects.filter(pk=profile.pk).update(remembers=False)
    profile.refresh_from_db()
    aged(start(resource, profile), 31)
    assert went() == {}


def test_whole_conversations_go_with_their_memory_when_that_is_asked_for(keep, resource):
    keep(conversations=365)
    world = beekeeping(resource)
    aged(world.thread, 366)
    assert went()["conversations"] == 1
    assert not Thread.objects.exists()
    assert check().clean


@pytest.mark.parametrize("status", ["waiting", "running"])
def test_a_conversation_in_which_somebody_writes_is_left(keep, resource, profile, status):
    keep(conversations=1)
    thread = aged(start(resource, profile), 2)
    lease = {"lease_token": thread.pk, "lease_expires_at": NOW} if status == "running" else {}
    Turn.objects.create(thread=thread, number=1, status=status, prompt="Hello", **lease)
    assert went() == {}


def test_who_comes_back_between_looking_and_erasing_keeps_the_conversation(thread):
    with pytest.raises(Refused, match="went on"):
        erase_thread(thread.pk, idle_since=NOW - DAY)
    aged(thread, 2)
    Turn.objects.create(thread=thread, number=1, status="waiting", prompt="Hello again")
    with pytest.raises(Refused, match="went on"):
        erase_thread(thread.pk, idle_since=NOW - DAY)
    assert Thread.objects.filter(pk=thread.pk).exists()


def test_labs_are_wiped_by_hand_alone(keep, thread):
    keep(conversations=1)
    Thread.objects.filter(pk=aged(thread, 2).pk).update(is_lab=True)
    assert went() == {}


def test_audit_entries_and_failures_to_sign_in_go(keep, settings):
    keep(audit=365)
    AuditEntry.objects.create(actor_name="root", action="read", at=NOW - 366 * DAY)
    AuditEntry.objects.create(actor_name="root", action="read", at=NOW - 364 * DAY)
    SignInFailure.objects.create(account="a", address="b", at=NOW - 2 * settings.SIGN_IN_WINDOW)
    assert went() == {"audit entries": 1, "failures to sign in": 1}


def test_media_that_no_message_has_go_with_their_files(keep, django_capture_on_commit_callbacks):
    kept = media.keep(b"never sent", media_type="text/plain")
    Media.objects.update(used_at=NOW - 3 * DAY)
    with django_capture_on_commit_callbacks(execute=True):
        assert went() == {"media": 1}
    assert not media.exists(kept.hash)


def test_what_went_is_written_down_but_not_that_nothing_did(keep):
    text("Left behind", 2)
    went()
    went()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name, entry.action) == (None, "the server", "expire")
    assert entry.numbers == {"texts of requests and calls": 1}


def test_a_worker_does_it_too(keep):
    text("Left behind", 2)
    tasks.expire()
    assert not Blob.objects.exists()


def test_a_dry_run_counts_the_same_and_removes_nothing(keep, resource, profile):
    keep(requests=30, calls=30, audit=30, temporary=30, conversations=30)
    text("Left behind", 2)
    media.keep(b"never sent", media_type="text/plain")
    Media.objects.update(used_at=NOW - 3 * DAY)
    AuditEntry.objects.create(actor_name="root", action="read", at=NOW - 31 * DAY)
    aged(start(resource, profile, temporary=True), 31)
    aged(start(resource, profile), 31)

    foretold = went(dry_run=True)
    assert Blob.objects.count() == Media.objects.count() == AuditEntry.objects.count() == 1
    assert Thread.objects.count() == 2
    assert foretold == went()
    assert set(foretold.values()) == {1}


def test_memory_holds_every_invariant_afterwards(keep, settings, resource):
    keep(requests=1, calls=1)
    world = beekeeping(resource)
    request(world.thread, 1, 3, text("What was sent", 3))
    Cycle.objects.update(started_at=NOW - 3 * DAY)
    Blob.objects.update(kept_at=NOW - 3 * DAY)
    assert went()
    assert not Blob.objects.exists()
    assert check().clean


def test_what_is_left_can_be_taken_elsewhere(keep, resource, tmp_path):
    keep(requests=1, calls=1)
    world = beekeeping(resource)
    request(world.thread, 1, 3, text("What was sent", 3))
    call(world.record, 3, text("Asked", 3), text("Answered", 3))
    assert went() == {"texts of requests and calls": 3}

    om("export", resource.key, "--to", tmp_path / "ada.jsonl")
    thread_id = world.thread.pk
    erase_resource(resource)
    om("import", tmp_path / "ada.jsonl")
    assert RequestSnapshot.objects.filter(turn__thread=thread_id).count() == 1
    assert check().clean
