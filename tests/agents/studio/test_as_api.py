import re
from html import unescape

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agents.lab.scenario import read
from agents.lab.stage import open_lab
from agents.tokens import make
from memory.services.look import record_of
from memory.services.note import note
from tests.agents.lab.conftest import TEAM
from tests.memory.services import play

from .context.test_views import asked

pytestmark = pytest.mark.django_db
CALL = re.compile(r'curl -H "Authorization: Bearer \$TOKEN" "http://testserver(/[^"]+)"')


@pytest.fixture
def lived(thread):
    """Return a thread with a turn, a request, a cycle and two revisions; and the cycle."""
    for number in range(2):
        asked(thread, f"Message {number}: {'bees ' * 150}", reply="Noted.")
    play.request(thread)
    cycle = play.buffer(thread).cycle
    for text in ("Ada keeps bees", "Ada sells honey"):
        note(record_of(thread).pk, text)
    return thread, cycle


def calls_on(client, address):
    response = client.get(address)
    assert response.status_code == 200, address
    return CALL.findall(unescape(response.content.decode()))


def test_every_call_that_a_page_names_is_answered(signed_in, lived, ada):
    thread, cycle = lived
    _, secret = make(ada, "Test")
    script = Client(headers={"Authorization": f"Bearer {secret}"})
    places = {
        "/": 1,
        "/chat/": 1,
        f"/chat/{thread.pk}/": 2,
        f"/memory/{thread.pk}/": 2,
        f"/memory/{thread.pk}/?rev=2&with=1": 3,
        f"/context/{thread.pk}/": 1,
        f"/context/{thread.pk}/requests/1/": 1,
        f"/context/calls/{cycle.pk}/": 1,
        f"/timeline/{thread.pk}/": 3,
        f"/settings/{thread.pk}/": 3,
        "/settings/": 1,
        "/agents/": 1,
    }
    for address, count in places.items():
        found = calls_on(signed_in, address)
        assert len(found) == count, address
        for call in found:
            assert script.get(call).status_code == 200, call


def test_a_lab_names_the_calls_of_its_panes(client, ben):
    ben.groups.add(Group.objects.create(name="operators"))
    client.force_login(ben)
    lab = open_lab(read(TEAM))
    _, secret = make(ben, "Test")
    script = Client(headers={"Authorization": f"Bearer {secret}"})
    found = calls_on(client, f"/lab/{lab.pk}/")
    assert len(found) == 6
    for call in found:
        assert script.get(call).status_code == 200, call
    assert calls_on(client, "/lab/") == []
