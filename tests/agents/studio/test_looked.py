import re

import pytest

from agents.looks import MemoryLook, ThreadLook
from memory.models import MemoryRecord
from memory.services.look import look as state_of
from memory.services.note import note
from tests.agents.clients import client_of
from tests.memory.services.play import talk

pytestmark = pytest.mark.django_db
SCRIPT = {"HX-Request": "true"}


@pytest.fixture
def said(thread):
    talk(thread, 2)
    thread.refresh_from_db()
    return thread


@pytest.fixture
def record(said):
    note(state_of(said.pk).record.pk, "Ada keeps bees")
    return MemoryRecord.objects.get(thread=said)


def html(client, address):
    return client.get(address).content.decode()


def looked(client, thread, **form):
    return client.post(f"/chat/{thread.pk}/looked", form, headers=SCRIPT)


def test_opening_a_page_notes_nothing(signed_in, said, record):
    for address in (f"/chat/{said.pk}/", f"/memory/{said.pk}/", "/chat/", "/memory/of/ada/"):
        html(signed_in, address)

    assert not ThreadLook.objects.exists()
    assert not MemoryLook.objects.exists()


def test_the_chat_says_where_what_is_new_begins(signed_in, said):
    assert 'id="news"' not in html(signed_in, f"/chat/{said.pk}/")
    assert looked(signed_in, said, through=said.last_position).status_code == 204
    assert 'id="news"' not in html(signed_in, f"/chat/{said.pk}/")
    talk(said, 1)

    page = html(signed_in, f"/chat/{said.pk}/")

    first = said.last_position + 1
    assert f'data-new="{first}"' in page
    assert f'href="?from={first}&amp;new={first}#message-{first}"' in page
    assert "new messages since you looked" in page


def test_a_link_to_what_is_new_still_shows_it_once_it_was_looked_at(signed_in, said):
    looked(signed_in, said)
    page = html(signed_in, f"/chat/{said.pk}/?from=2&new=2")
    assert 'data-new="2"' in page
    assert 'id="news"' not in page
    assert signed_in.get(f"/chat/{said.pk}/?new=two").status_code == 404


def test_without_a_script_the_button_leads_back(signed_in, said):
    answer = signed_in.post(f"/chat/{said.pk}/looked")
    assert (answer.status_code, answer.url) == (302, f"/chat/{said.pk}/")
    assert ThreadLook.objects.get().through == said.last_position


def test_a_number_that_is_none_is_no_look(signed_in, said):
    for through in ("-1", "two", str(2**63)):
        assert looked(signed_in, said, through=through).status_code == 404
    assert not ThreadLook.objects.exists()


def test_the_lists_count_for_each_person(signed_in, ben, resource, said, record):
    resource.members.add(ben)
    assert "not opened yet" in html(signed_in, "/chat/")
    looked(signed_in, said)
    talk(said, 1)

    assert ">2 new<" in html(signed_in, "/chat/")
    assert ">2 new<" in html(signed_in, "/")
    assert "not opened yet" in html(client_of(ben), "/chat/")

    assert signed_in.post("/chat/looked", {"resource": "ada"}).status_code == 302
    assert not re.search("new<|not opened", html(signed_in, "/chat/"))
    assert "not opened yet" in html(client_of(ben), "/chat/")


def test_marking_all_takes_in_only_what_is_listed(signed_in, stranger, said):
    assert stranger.post("/chat/looked", {"resource": "ada"}).status_code == 404
    assert stranger.post("/chat/looked", {"resource": "*"}).status_code == 302
    assert not ThreadLook.objects.exists()


def test_the_memory_page_marks_lines_that_are_new_until_they_are_seen(signed_in, said, record):
    place = f"/memory/{said.pk}/"
    assert "since you looked" not in html(signed_in, place)
    signed_in.post(f"/memory/records/{record.pk}/looked", {"through": 1}, headers=SCRIPT)
    note(record.pk, "The hive is on the roof")

    for _ in range(2):
        page = html(signed_in, place)
        (marked,) = re.findall(r'<li class="line[^"]*unlooked[^"]*".*?</li>', page)
        assert "The hive is on the roof" in marked
        assert "since you looked" in page
        signed_in.post(f"/memory/records/{record.pk}/looked", {"through": 2}, headers=SCRIPT)

    answer = signed_in.post(f"/memory/records/{record.pk}/looked")
    assert (answer.status_code, answer.url) == (302, place)
    assert "unlooked" not in html(signed_in, place)


def test_what_one_changed_oneself_is_not_new(signed_in, ada, said, record):
    signed_in.post(f"/memory/records/{record.pk}/looked", {"through": 1})
    note(record.pk, "The hive is on the roof", author=ada)
    assert "since you looked" not in html(signed_in, f"/memory/{said.pk}/")


def test_the_memories_of_a_resource_are_counted_and_seen_at_once(signed_in, said, record):
    place = "/memory/of/ada/"
    assert "not looked at yet" in html(signed_in, place)
    signed_in.post(f"/memory/records/{record.pk}/looked", {"through": 1})
    note(record.pk, "The hive is on the roof")
    assert ">1 new<" in html(signed_in, place)

    answer = signed_in.post("/memory/of/ada/looked")
    assert (answer.status_code, answer.url) == (302, place)
    assert ">1 new<" not in html(signed_in, place)


def test_the_mark_of_new_lines_does_not_make_a_region_differ_by_itself(signed_in, said, record):
    signed_in.post(f"/memory/records/{record.pk}/looked", {"through": 1})
    note(record.pk, "The hive is on the roof")
    etags = [
        re.findall(r'id="(\w+)" data-etag="(\w+)"', html(signed_in, f"/memory/{said.pk}/"))
        for _ in range(2)
    ]
    assert etags[0] == etags[1]
