import pytest
from django.contrib.auth.models import Group, User
from django.test import RequestFactory
from django.utils.timezone import now

from agents.studio.respond import respond
from memory.models import Message, Resource, Thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def mia(client):
    user = User.objects.create_user("mia")
    client.force_login(user)
    return user


def conversation(key, *texts, title="", members=(), **fields):
    resource = Resource.objects.get_or_create(key=key, defaults={"name": key.title()})[0]
    resource.members.add(*members)
    thread = Thread.objects.create(resource=resource, title=title, agent="guide", **fields)
    for position, text in enumerate(texts, 1):
        Message.objects.create(
            thread=thread,
            position=position,
            kind="request",
            payload={},
            text=text,
            tokens=1,
            created_at=now(),
        )
    return thread


def test_a_page_of_a_thread_leads_to_the_newest_one(client, mia):
    thread = conversation("mine", members=[mia])
    conversation("mine", members=[mia], is_lab=True)
    assert client.get("/context/").url == f"/context/{thread.pk}/"


def test_without_threads_a_page_says_so(client, mia):
    assert b"No conversations yet" in client.get("/timeline/").content


def test_search_finds_threads_messages_and_pages_but_nothing_of_others(client, mia):
    conversation("mine", "Buy oranges.", title="Market", members=[mia])
    conversation("theirs", "Sell oranges.", title="Orange secrets")
    found = client.get("/find/?q=orange").content.decode()
    assert "Buy oranges." in found
    assert "secrets" not in found
    assert "Sell" not in found
    assert "Timeline" in client.get("/find/?q=timel").content.decode()


def test_operators_find_everything(client, mia):
    conversation("theirs", "Sell oranges.", title="Orange secrets")
    mia.groups.add(Group.objects.create(name="operators"))
    assert "Orange secrets" in client.get("/find/?q=orange").content.decode()


def test_choosing_another_thread_keeps_the_page(client, mia):
    thread = conversation("mine", title="Market", members=[mia])
    found = client.get("/scopes/?for=context&q=mark").content.decode()
    assert f'href="/context/{thread.pk}/"' in found


def test_search_says_when_nothing_is_found(client, mia):
    found = client.get("/find/?q=qqq", headers={"HX-Request": "true"}).content.decode()
    assert "Nothing is called “qqq”" in found
    assert "<html" not in found


@pytest.mark.parametrize("etags", ["", "[", "[1]", "null"])
def test_a_page_that_shows_nothing_is_sent_all_its_regions(mia, etags):
    assert "hx-partial" in told(mia, etags)


def test_a_page_is_sent_only_what_it_does_not_show_yet(mia):
    etag = told(mia, "{}").split('data-etag="')[1].split('"')[0]
    assert told(mia, f'{{"draft": "{etag}"}}') == ""


def told(user, etags):
    request = RequestFactory().get("/", headers={"X-Regions": etags})
    request.user = user
    context = {"draft": "Hello", "now": now()}
    return respond(request, "chat/page.html", context, regions=["draft"]).content.decode()
