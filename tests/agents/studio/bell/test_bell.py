"""The bell tells of what failed, what was condensed and what others changed, of one's own alone."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from agents.models import Turn
from memory.models import Cycle, MemoryRecord, Resource, Revision
from memory.services.edit import edit
from memory.services.look import look
from memory.services.note import note
from tests.agents.clients import client_of
from tests.memory.services import play

pytestmark = pytest.mark.django_db
SCRIPT = {"HX-Request": "true"}


def text(response):
    return " ".join(response.content.decode().split())


def shown(client):
    return text(client.get("/bell/"))


def mark(client):
    return text(client.get("/bell/mark"))


def failed(thread, **more):
    fields = {"status": "failed", "error": "The model was overloaded."}
    fields |= {"finished_at": timezone.now(), **more}
    return Turn.objects.create(thread=thread, number=1, prompt="Hello", **fields)


def record_of(thread):
    return MemoryRecord.objects.get_or_create(thread=thread, resource=thread.resource)[0]


def cycle(thread, **more):
    now = timezone.now()
    fields = {"record": record_of(thread), "thread": thread, "lane": f"observer:{thread.pk}"}
    fields |= {"kind": Cycle.Kind.OBSERVE, "epoch": 0, "lease_expires_at": now}
    fields |= {"started_at": now, "finished_at": now, "status": "failed", "error": "No reply."}
    return Cycle.objects.create(**fields, **more)


def test_where_nothing_happened_it_says_so(signed_in):
    assert "Nothing failed, nothing was condensed" in shown(signed_in)
    assert "Notices" in mark(signed_in)
    assert "<b" not in mark(signed_in)


def test_an_answer_and_an_observation_that_failed_are_told(signed_in, thread):
    failed(thread)
    cycle(thread)
    page = shown(signed_in)
    for said in ("✕ Answer failed", "The model was overloaded.", "✕ Observation failed"):
        assert said in page
    assert '<b class="num">2</b>' in mark(signed_in)
    assert "new notices" in mark(signed_in)


def test_a_reflection_is_told_with_what_it_made(signed_in, thread):
    record = record_of(thread)
    sizes = {"tokens_before": 2_000, "tokens_after": 900}
    Revision.objects.create(record=record, number=1, cause="reflect", **sizes)
    page = shown(signed_in)
    assert "✓ Memory condensed" in page
    assert "2k → 900 tokens" in page


def test_what_others_change_is_told_and_not_what_one_changes_oneself(signed_in, thread, ada, ben):
    record = record_of(thread)
    line = note(record.pk, "Oak costs eighty euros", author=ada)
    assert "Note written" not in shown(signed_in)
    edit(line.pk, "Oak costs ninety euros", author=ben, reason="It rose.")
    page = shown(signed_in)
    assert "✎ Line edited by ben" in page
    assert "It rose." in page
    assert f"/memory/{thread.pk}/?rev={look(thread.pk).record.revision}" in page


def test_what_was_seen_is_not_new(signed_in, thread):
    failed(thread)
    assert signed_in.post("/bell/looked").url == "/bell/"
    assert "<b" not in mark(signed_in)
    page = shown(signed_in)
    assert "✕ Answer failed" in page
    assert "Mark " not in page
    cycle(thread)
    assert '<b class="num">1</b>' in mark(signed_in)


def test_what_was_seen_in_one_browser_is_not_new_in_another(signed_in, ada, thread):
    failed(thread)
    signed_in.post("/bell/looked")
    assert "<b" not in mark(client_of(ada))


def test_what_happened_before_signing_in_is_not_new(signed_in, thread, ada):
    failed(thread, finished_at=ada.last_login - timedelta(hours=1))
    assert "✕ Answer failed" in shown(signed_in)
    assert "<b" not in mark(signed_in)


def test_what_is_two_weeks_old_is_not_told(signed_in, thread):
    failed(thread, finished_at=timezone.now() - timedelta(days=15))
    assert "✕ Answer failed" not in shown(signed_in)


def test_nobody_is_told_of_what_is_not_theirs_staff_neither(stranger, thread, ben):
    failed(thread)
    ben.groups.add(Group.objects.create(name="admins"))
    for client in (stranger, client_of(ben)):
        assert "✕ Answer failed" not in shown(client)
        assert "<b" not in mark(client)


def test_a_shared_memory_leads_to_its_own_page(signed_in, ada, ben):
    team = Resource.objects.create(key="team", name="The team", scope="resource")
    team.members.add(ada)
    record = MemoryRecord.objects.create(resource=team, scope="resource")
    note(record.pk, "Oak", author=ben)
    assert 'href="/memory/of/team/?rev=1">The team</a>' in shown(signed_in)


def test_the_drawer_gets_the_list_alone_and_a_region_when_it_asks_for_regions(signed_in, thread):
    failed(thread)
    drawer = text(signed_in.get("/bell/", headers=SCRIPT))
    assert drawer.startswith("<section")
    regions = signed_in.get("/bell/", headers={**SCRIPT, "X-Regions": "{}"})
    assert "✕ Answer failed" in text(regions)
    assert not text(regions).startswith("<section")


def test_every_page_has_the_bell_and_reads_nothing_for_it(
    signed_in, thread, django_assert_max_num_queries
):
    page = text(signed_in.get(f"/chat/{thread.pk}/"))
    assert 'id="bell" href="/bell/"' in page
    with django_assert_max_num_queries(8):
        signed_in.get("/bell/mark")


def test_the_list_costs_the_same_however_much_there_is(
    signed_in, thread, django_assert_max_num_queries
):
    play.talk(thread, 2)
    for _ in range(20):
        cycle(thread)
    with django_assert_max_num_queries(12):
        assert shown(signed_in).count("Observation failed") == 20
