"""What the next request would be if it were sent in another conversation."""

import pytest
from django.contrib.auth.models import Group

from agents.audit import AuditEntry
from agents.services.thread import start
from memory.models import Resource

from .test_views import asked, html

pytestmark = pytest.mark.django_db


def test_the_draft_may_be_supposed_to_be_sent_in_another_conversation(page, thread, ada, profile):
    team = Resource.objects.create(key="team", name="The team")
    team.members.add(ada)
    there = start(team, profile, title="Roofs")
    asked(thread, "Only here")
    asked(there, "Only there")

    shown = html(page(thread, draft="And now?", elsewhere=str(there.pk)))
    assert "Sent in “Roofs” of team instead" in shown
    assert f'<option value="{there.pk}" selected>team › Roofs</option>' in shown
    assert "Only there" in shown
    assert "Only here" not in shown
    assert f'href="/chat/{there.pk}/' in shown

    here, raw = (
        page(thread, "raw.json", draft="And now?", **query).json()
        for query in ({}, {"elsewhere": str(there.pk)})
    )
    real = page(there, "raw.json", draft="And now?").json()
    assert raw["entries"] == real["entries"] != here["entries"]


def test_nothing_is_supposed_of_a_conversation_one_may_not_see(page, thread, profile):
    theirs = Resource.objects.create(key="theirs", name="Theirs")
    secret = start(theirs, profile, title="Secret plans")

    for path in ("", "raw/", "raw.json", "compare/"):
        assert page(thread, path, elsewhere=str(secret.pk)).status_code == 404, path
    assert page(thread, elsewhere="nonsense").status_code == 404
    assert "Secret plans" not in html(page(thread))


def test_an_operator_who_supposes_anothers_conversation_leaves_a_trace(
    client, ben, thread, profile
):
    ben.groups.add(Group.objects.create(name="operators"))
    theirs = Resource.objects.create(key="theirs", name="Theirs")
    thread.resource.members.add(ben)
    client.force_login(ben)

    place = f"/context/{thread.pk}/?elsewhere={start(theirs, profile).pk}"
    assert client.get(place).status_code == 200

    assert [entry.resource_key for entry in AuditEntry.objects.all()] == ["theirs"]
