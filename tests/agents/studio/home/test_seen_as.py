"""An administrator looks with somebody's eyes: at what they see alone, and never unnoticed."""

import pytest

from agents.audit import AuditEntry
from agents.services.thread import start
from memory.models import Resource
from tests.agents.clients import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(ben):
    ben.is_superuser = True
    ben.save()
    return client_of(ben)


def text(response):
    return " ".join(response.content.decode().split())


def test_the_page_is_what_the_other_sees_and_says_so(admin, resource, profile):
    start(resource, profile, title="Oak")
    other = Resource.objects.create(key="other", name="Other")
    start(other, profile, title="Beech")
    page = text(admin.get("/as/ada/"))
    assert "Home as ada sees it" in page
    assert "Oak" in page
    assert "Beech" not in page
    assert "Beech" in text(admin.get("/"))
    assert "<b>Ada</b>: read, chat, edit memory" in page
    assert "erase data" not in page


def test_it_is_noted_once_a_look_and_as_a_reading_of_each_resource(admin, resource, ben):
    admin.get("/as/ada/")
    admin.get("/as/ada/", headers={"X-Regions": "{}", "HX-Request": "true"})
    looks = AuditEntry.objects.filter(action="view as")
    assert [(each.actor, each.reason) for each in looks] == [(ben, "As ada")]
    assert AuditEntry.objects.filter(action="read", resource_key=resource.key).count() == 1


def test_nobody_but_administrators_looks_as_somebody(client, cleo, ada):
    response = client_of(cleo).get("/as/ada/")
    assert response.status_code == 403
    assert "administer" in text(response)
    assert not AuditEntry.objects.exists()


def test_there_is_no_look_as_nobody(admin):
    assert admin.get("/as/nobody/").status_code == 404


def test_who_is_a_member_of_nothing_is_said_to_be(admin, cleo):
    assert "cleo is a user and a member of no resource." in text(admin.get("/as/cleo/"))


def test_the_session_stays_the_administrators(admin, resource):
    page = text(admin.get("/as/ada/"))
    assert "Account ben" in page
    assert "Account ada" not in page


def test_administrators_alone_find_people_by_name(admin, signed_in):
    assert 'href="/as/ada/"' in text(admin.get("/find/?q=ada"))
    assert 'href="/as/' not in text(signed_in.get("/find/?q=ada"))
