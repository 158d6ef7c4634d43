"""What administrators do asks first, happens by POST alone, and leaves a line in the audit."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from agents.audit import AuditEntry
from agents.models import Token, Turn
from memory.dispatch import asked as switches
from memory.models import Cycle, Line, MemoryRecord, Resource, Thread
from memory.models.cycle import observer_lane
from memory.services.edit import edit
from tests.memory.services.editing import texts, wrong

pytestmark = pytest.mark.django_db


class Bell:
    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)


@pytest.fixture
def bells():
    bells = {name: Bell() for name in switches}
    previous = {name: switches[name].use(bell) for name, bell in bells.items()}
    yield bells
    for name, dispatcher in previous.items():
        switches[name].use(dispatcher)


@pytest.fixture
def running(world):
    later = timezone.now() + timedelta(minutes=1)
    return Cycle.objects.create(
        record=world.record,
        thread=world.thread,
        lane=observer_lane(world.thread.pk),
        epoch=world.record.epoch,
        kind=Cycle.Kind.BUFFER,
        lease_expires_at=later,
        started_at=later,
        first_position=9,
        last_position=10,
    )


def place(act, row):
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{act}", args=[row.pk])


def line_page(line):
    return reverse("admin:memory_line_change", args=[line.pk])


DANGEROUS = [
    ("erase", lambda w: w.thread, lambda w: str(w.thread.pk)),
    ("erase", lambda w: w.thread.resource, lambda w: "ada"),
    ("erase", lambda w: w.note, lambda w: w.note.pk.hex[-8:]),
    ("erase", lambda w: w.thread.resource.members.get(), lambda w: "ada"),
    ("clear", lambda w: w.record, lambda w: w.record.pk.hex[-8:]),
]


@pytest.mark.parametrize(("act", "row", "typed"), DANGEROUS)
def test_what_is_dangerous_says_what_it_does_and_does_nothing_yet(client, world, act, row, typed):
    before = list(Line.objects.values_list("pk", "until"))

    page = client.get(place(act, row(world)))

    assert page.status_code == 200
    assert "What this does" in page.content.decode()
    assert f"Type {typed(world)} to go on" in page.content.decode()
    assert list(Line.objects.values_list("pk", "until")) == before


@pytest.mark.parametrize(("act", "row", "typed"), DANGEROUS)
@pytest.mark.parametrize("answer", ["", "yes", "ADA"])
def test_what_is_dangerous_is_not_done_unless_it_is_typed(client, world, act, row, typed, answer):
    response = client.post(place(act, row(world)), {"typed": answer, "reason": ""})

    assert response.status_code == 422
    assert texts(world.record) == texts(world.record, 3)
    assert not AuditEntry.objects.exclude(action="read").exists()


@pytest.mark.parametrize(("act", "row", "typed"), DANGEROUS)
def test_what_is_typed_is_done_reported_and_noted(client, world, act, row, typed):
    given = {"typed": typed(world), "reason": "They asked for it"}

    response = client.post(place(act, row(world)), given)

    page = response.content.decode()
    assert response.status_code == 200
    assert "Report" in page
    entry = AuditEntry.objects.exclude(action="read").get()
    assert (entry.actor_name, entry.reason) == ("root", "They asked for it")
    assert sum(value for value in entry.numbers.values()) > 0
    assert wrong() == []


def test_an_erased_thread_is_gone(client, world):
    client.post(
        place("erase", world.thread), {"typed": str(world.thread.pk), "reason": "They asked"}
    )

    assert not Thread.objects.exists()
    assert AuditEntry.objects.get(action="erase").resource_key == "ada"


def test_an_erased_resource_leaves_an_entry_that_names_it(client, world):
    client.post(place("erase", world.thread.resource), {"typed": "ada", "reason": ""})

    assert not Resource.objects.exists()
    entry = AuditEntry.objects.get(action="erase")
    assert (entry.resource_key, entry.numbers["threads"]) == ("ada", 1)


def test_wrong_counts_are_counted_anew_and_nothing_else_changes(client, world):
    resource, said = world.thread.resource, texts(world.record)
    right = dict(Line.objects.values_list("pk", "tokens"))
    Line.objects.update(tokens=1)
    assert wrong() != []

    shown = client.get(place("count", resource))
    assert dict(Line.objects.values_list("tokens", "tokens")) == {1: 1}
    client.post(place("count", resource), {})

    assert f"{len(right)}" in shown.content.decode()
    assert dict(Line.objects.values_list("pk", "tokens")) == right
    assert texts(world.record) == said
    assert wrong() == []
    entry = AuditEntry.objects.get(action="count")
    assert (entry.numbers["lines"], entry.numbers["tokens_before"]) == (len(right), len(right))


def test_cursors_that_somebody_moved_are_put_right_and_work_goes_on(client, world):
    record = world.record
    right = list(record.cursors.values_list("buffered_through", "observed_through"))
    record.cursors.update(buffered_through=F("buffered_through") + 7)
    assert wrong() != []

    shown = client.get(place("reconcile", record)).content.decode()
    client.post(place("reconcile", record), {})

    assert "Cursors that stand elsewhere" in shown
    assert list(record.cursors.values_list("buffered_through", "observed_through")) == right
    assert wrong() == []
    entry = AuditEntry.objects.get(action="reconcile")
    assert entry.numbers["cursors"] == len(right) == 1
    client.post(place("reconcile", record), {})
    assert AuditEntry.objects.filter(action="reconcile").latest("pk").numbers["cursors"] == 0


def test_what_runs_is_not_erased_under_its_feet(client, world):
    Turn.objects.filter(pk=world.turn.pk).update(
        status="running", lease_token=uuid4(), lease_expires_at=timezone.now() + timedelta(hours=1)
    )

    given = {"typed": str(world.thread.pk), "reason": ""}
    response = client.post(place("erase", world.thread), given)

    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert Thread.objects.exists()


@pytest.mark.parametrize("act", ["observe", "activate", "reflect"])
def test_work_is_begun_by_a_post_alone(
    client, world, bells, act, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        client.get(place(act, world.thread))
        assert bells[act].rung == []
        response = client.post(place(act, world.thread))

    assert response.status_code == 302
    assert bells[act].rung == [world.thread.pk]
    assert AuditEntry.objects.get(action=act).thread == world.thread.pk


@pytest.mark.parametrize("act", ["observe", "activate", "reflect"])
def test_several_are_worked_on_at_once(
    client, world, bells, act, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            reverse("admin:memory_thread_changelist"),
            {"action": f"{act}_all", "_selected_action": [str(world.thread.pk)]},
        )

    assert bells[act].rung == [world.thread.pk]
    assert AuditEntry.objects.get(action=act).resource_key == "ada"


def test_a_thread_is_forked_where_a_step_ends(client, world):
    refused = client.post(place("fork", world.thread), {"number": 3, "reason": ""})
    assert refused.status_code == 422
    assert "nearest to fork at: 2 and 4" in refused.content.decode()

    client.post(place("fork", world.thread), {"number": 4, "reason": "What if"})
    assert Thread.objects.get(parent=world.thread).fork_position == 4
    assert wrong() == []


def test_a_revision_is_restored_as_a_new_one(client, world, root):
    revision = world.record.revisions.get(number=2)
    page = client.get(place("restore", revision)).content.decode()
    assert "Lines added since" in page

    client.post(place("restore", revision), {"reason": "Back"})

    assert texts(world.record) == texts(world.record, 2)
    made = world.record.revisions.latest("number")
    assert (made.cause, made.author, made.reason) == ("restore", root, "Back")


def test_a_failed_cycle_is_tried_again(client, world, running):
    Cycle.objects.filter(pk=running.pk).update(
        status="failed",
        finished_at=timezone.now(),
        next_attempt_at=timezone.now() + timedelta(hours=1),
    )
    assert client.post(place("try_again", running)).status_code == 302

    running.refresh_from_db()
    assert running.next_attempt_at <= timezone.now() + timedelta(seconds=1)
    assert AuditEntry.objects.get(action="retry").thread == world.thread.pk


def test_a_running_cycle_is_cancelled_once(client, world, running):
    assert "Cancel a running cycle" in client.get(place("cancel", running)).content.decode()
    assert client.post(place("cancel", running)).status_code == 302
    assert client.post(place("cancel", running)).status_code == 422
    running.refresh_from_db()
    assert running.status == "cancelled"


def test_a_lease_is_released_and_says_whose_it_was(client, world, running):
    assert str(running.owner) in client.get(place("release", running)).content.decode()
    assert client.post(place("release", running)).status_code == 302
    assert client.post(place("release", running)).status_code == 422

    running.refresh_from_db()
    assert (running.status, running.interrupted) == ("failed", True)
    assert wrong() == []


def test_a_turn_is_taken_from_its_runner(client, world):
    assert client.post(place("release", world.turn)).status_code == 422

    Turn.objects.filter(pk=world.turn.pk).update(
        status="running", lease_token=uuid4(), lease_expires_at=timezone.now() + timedelta(hours=1)
    )
    assert client.post(place("release", world.turn)).status_code == 302
    assert Turn.objects.get().status == "interrupted"


def test_a_token_is_revoked(client, world):
    token = Token.objects.get()
    client.post(place("revoke", token), {"reason": "Leaked"})

    assert Token.objects.get().state == "revoked"
    assert AuditEntry.objects.get(action="revoke token").reason == "Leaked"


# ---- lines


def test_a_line_is_edited_by_the_service_for_a_reason(client, world, root):
    given = {"text": "Wax is cheap", "kind": "low", "reason": "It fell", "expected": 3}

    response = client.post(line_page(world.note), given)

    assert response.status_code == 302
    new = Line.objects.get(replaces=world.note)
    assert (new.text, new.kind, new.since) == ("Wax is cheap", "low", 4)
    assert new.tokens > 0
    made = world.record.revisions.latest("number")
    assert (made.cause, made.author, made.reason) == ("edit", root, "It fell")
    assert wrong() == []


def test_an_edit_needs_a_reason(client, world):
    given = {"text": "Wax is cheap", "kind": "low", "reason": "", "expected": 3}

    assert client.post(line_page(world.note), given).status_code == 422
    assert not Line.objects.filter(replaces=world.note).exists()


def test_a_line_that_changed_meanwhile_is_a_conflict_that_shows_both(client, world, ada):
    theirs = edit(world.note.pk, "Wax is scarce", author=ada)
    given = {"text": "Wax is cheap", "kind": "high", "reason": "It fell", "expected": 3}

    for line in (world.note, theirs):
        response = client.post(line_page(line), given)
        page = response.content.decode()
        assert response.status_code == 409
        assert "Wax is scarce" in page
        assert "Wax is cheap" in page
    assert texts(world.record)[-1] == "Wax is scarce"


def test_a_line_out_of_sight_has_no_form(client, world):
    edit(world.note.pk, "Wax is scarce")

    assert 'name="text"' not in client.get(line_page(world.note)).content.decode()


@pytest.mark.parametrize("text", ["", " ", "x" * 10_001, "Wax is dear"])
def test_an_edit_that_cannot_be_is_refused_with_what_was_typed(client, world, text):
    given = {"text": text, "kind": "high", "reason": "It fell", "expected": 3}

    response = client.post(line_page(world.note), given)

    assert response.status_code == 422
    assert MemoryRecord.objects.get(pk=world.record.pk).revision == 3


def test_a_title_is_changed_by_the_service(client, world):
    page = reverse("admin:memory_thread_change", args=[world.thread.pk])

    client.post(page, {"title": " The  hives "})

    world.thread.refresh_from_db()
    assert (world.thread.title, world.thread.title_pinned) == ("The hives", True)
    assert world.thread.last_position == 10


def test_a_resource_takes_a_time_zone_that_there_is(client, world, ada):
    page = reverse("admin:memory_resource_change", args=[world.thread.resource_id])
    given = {"name": "Ada", "members": [ada.pk]}

    assert client.post(page, {**given, "time_zone": "Mars/Dome"}).status_code == 200
    assert Resource.objects.get().time_zone == "Europe/Berlin"
    assert client.post(page, {**given, "time_zone": "Asia/Tokyo"}).status_code == 302
    assert Resource.objects.get().time_zone == "Asia/Tokyo"
    assert wrong() == []
