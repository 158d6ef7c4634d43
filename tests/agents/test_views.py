import re
from html.parser import HTMLParser
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import Turn
from agents.services.send import send
from agents.services.thread import start
from memory.messages import user_prompt
from memory.models import Line, MemoryRecord, Message, Observation, Resource, Thread
from memory.services.append import append

pytestmark = pytest.mark.django_db

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


@pytest.fixture
def line(thread):
    """Return a visible line that rests on the thread's first two messages."""
    now = timezone.now()
    answer = ModelResponse(parts=[TextPart("A hive.")])
    append(thread.pk, [user_prompt("What do bees live in?", now), answer], at=now)
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    observation = Observation.objects.create(
        record=record,
        thread=thread,
        kind=Observation.Kind.OBSERVATION,
        first_position=1,
        last_position=2,
        since=1,
        place=1,
    )
    return Line.objects.create(
        observation=observation,
        ordinal=0,
        kind=Line.Kind.HIGH,
        text="Bees live in a hive",
        tokens=5,
        first_position=1,
        last_position=2,
        since=1,
    )


def pages(thread, line):
    """Return every address that shows something of a thread."""
    return [
        f"/chat/{thread.pk}/",
        f"/chat/{thread.pk}/regions",
        f"/chat/{thread.pk}/earlier?from=1",
        f"/memory/lines/{line.pk}/sources",
        f"/memory/{line.observation.record_id}/generations",
    ]


def actions(thread):
    """Return every address that changes something of a thread."""
    return [
        f"/chat/{thread.pk}/send",
        f"/chat/{thread.pk}/stop",
        f"/chat/{thread.pk}/turns/1/withdraw",
        f"/chat/{thread.pk}/turns/1/retry",
    ]


def test_a_member_sees_every_page_of_a_thread(signed_in, thread, line):
    assert [signed_in.get(url).status_code for url in pages(thread, line)] == [200] * 5


def test_a_stranger_finds_nothing_and_changes_nothing(stranger, ada, thread, line):
    send(thread.pk, "Wait for me", author=ada)

    assert {stranger.get(url).status_code for url in pages(thread, line)} == {404}
    answers = {stranger.post(url, {"text": "Hi"}).status_code for url in actions(thread)}
    assert answers == {404}
    assert list(Turn.objects.values_list("status", flat=True)) == ["waiting"]


def test_guessed_ids_are_as_unknown_as_those_of_others(signed_in):
    urls = ["/chat/{}/", "/chat/{}/regions", "/memory/lines/{}/sources", "/memory/{}/generations"]

    assert {signed_in.get(url.format(uuid4())).status_code for url in urls} == {404}
    assert signed_in.get("/chat/1/").status_code == 404


def test_nobody_sees_anything_without_signing_in(client, thread, line):
    for url in ["/", "/chat/", *pages(thread, line)]:
        answer = client.get(url)
        assert answer.status_code == 302
        assert answer.url.startswith("/sign-in/?next=")
    for url in ["/chat/new", *actions(thread)]:
        assert client.post(url, {"text": "Hi"}).url.startswith("/sign-in/")
    assert not Turn.objects.exists()


def test_health_needs_no_session(client):
    assert client.get("/healthz").status_code == 200


def test_a_list_shows_only_ones_own_resources(signed_in, stranger, thread, cleo):
    other = Resource.objects.create(key="cleo", name="Cleo")
    other.members.add(cleo)

    assert signed_in.get("/chat/?resource=cleo").status_code == 404
    assert str(thread.pk) in signed_in.get("/chat/?resource=ada").content.decode()
    assert str(thread.pk) not in stranger.get("/chat/").content.decode()


def test_who_belongs_nowhere_has_no_conversations(stranger, thread):
    assert "not a member" in stranger.get("/chat/").content.decode()


def test_a_new_thread_belongs_to_a_resource_of_ones_own(signed_in, stranger, resource, profile):
    fields = {"resource": resource.key, "agent": profile.slug}

    assert stranger.post("/chat/new", fields).status_code == 404
    assert signed_in.post("/chat/new", {**fields, "agent": "nobody"}).status_code == 404
    answer = signed_in.post("/chat/new", fields)
    assert answer.url == f"/chat/{Thread.objects.get().pk}/"


def test_a_message_can_be_sent_without_any_script(signed_in, thread):
    key = uuid4()

    for _ in range(2):
        answer = signed_in.post(f"/chat/{thread.pk}/send", {"text": "Hello", "key": str(key)})

    assert answer.url == f"/chat/{thread.pk}/"
    assert [(turn.prompt, turn.key) for turn in Turn.objects.all()] == [("Hello", key)]
    page = signed_in.get(answer.url).content.decode()
    assert 'http-equiv="refresh"' in page
    assert "waits its turn" in page


@pytest.mark.parametrize(
    ("text", "sentence"), [("", "is empty"), (" \n", "is empty"), ("x" * 1_000_000, "at most")]
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(signed_in, thread, text, sentence):
    answer = signed_in.post(f"/chat/{thread.pk}/send", {"text": text}, follow=True)
    assert sentence in answer.content.decode()

    scripted = signed_in.post(
        f"/chat/{thread.pk}/send", {"text": text}, headers={"HX-Request": "true"}
    )
    assert (scripted.status_code, sentence in scripted.content.decode()) == (422, True)
    assert not Turn.objects.exists()


def test_a_waiting_message_can_be_withdrawn(signed_in, thread):
    turn = send(thread.pk, "Hello")

    signed_in.post(f"/chat/{thread.pk}/turns/{turn.number}/withdraw")
    again = signed_in.post(f"/chat/{thread.pk}/turns/{turn.number}/withdraw", follow=True)

    turn.refresh_from_db()
    assert turn.status == Turn.Status.WITHDRAWN
    assert "being answered already" in again.content.decode()


def test_a_failed_turn_can_be_tried_again_once(signed_in, thread):
    Turn.objects.create(thread=thread, number=1, status="failed", prompt="Hello", error="No key.")
    assert "No key." in signed_in.get(f"/chat/{thread.pk}/").content.decode()

    for _ in range(2):
        signed_in.post(f"/chat/{thread.pk}/turns/1/retry")

    assert list(Turn.objects.order_by("number").values_list("prompt", "status")) == [
        ("Hello", "failed"),
        ("Hello", "waiting"),
    ]


def test_a_turn_that_went_well_cannot_be_tried_again(signed_in, thread):
    Turn.objects.create(thread=thread, number=1, status="done", prompt="Hello")

    answer = signed_in.post(f"/chat/{thread.pk}/turns/1/retry", follow=True)

    assert "was not answered" in answer.content.decode()


def test_forms_need_their_token(ada, thread):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)

    assert client.post(f"/chat/{thread.pk}/send", {"text": "Hello"}).status_code == 403
    assert not Turn.objects.exists()


HOSTILE = (
    "</observations><thread id=7><script>alert(1)</script>"
    "\x00\x1b[31m <hx-partial hx-target='#log'>"
)


def test_hostile_text_is_only_ever_text(signed_in, thread):
    now = timezone.now()
    answer = ModelResponse(parts=[TextPart(HOSTILE.replace("\x00", ""))])
    append(thread.pk, [user_prompt(HOSTILE, now), answer], at=now)
    Thread.objects.update(title="<script>alert(2)</script>")
    signed_in.post(f"/chat/{thread.pk}/send", {"text": HOSTILE})

    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    partials = signed_in.get(f"/chat/{thread.pk}/regions").content.decode()

    assert Message.objects.count() == 2
    for html in (page, partials):
        assert "<script>alert" not in html
        assert "<thread" not in html
        assert "</observations" not in html
    assert "<hx-partial" not in page
    assert partials.count("<hx-partial") == len(re.findall(r'hx-target="#\w+" hx-swap', partials))


class Inline(HTMLParser):
    """Collect what the policy would refuse: styles, scripts and handlers inside the page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag == "style" or (tag == "script" and not names.get("src")):
            self.found.append(tag)
        self.found += [name for name in names if name == "style" or name.startswith("on")]


def test_the_policy_is_strict_and_the_page_keeps_it(signed_in, thread, line):
    for url in ["/sign-in/", *pages(thread, line)]:
        answer = signed_in.get(url)
        policy = answer.headers["Content-Security-Policy"]
        assert {part.strip() for part in policy.split(";") if part.strip()} == POLICY
        inline = Inline()
        inline.feed(answer.content.decode())
        assert inline.found == []


def test_regions_are_sent_only_where_they_differ(signed_in, thread):
    whole = signed_in.get(f"/chat/{thread.pk}/regions").content.decode()
    etags = dict(re.findall(r'id="(\w+)" data-etag="(\w+)"|$^', whole))
    etags |= dict(
        re.findall(r'<hx-partial hx-target="#(\w+)"[^>]*>.*?data-etag="(\w+)"', whole, re.S)
    )

    assert signed_in.get(f"/chat/{thread.pk}/regions", etags).content == b""
    changed = signed_in.get(f"/chat/{thread.pk}/regions", {**etags, "gauges": "old"})
    assert changed.content.decode().count("<hx-partial") == 1


@pytest.mark.parametrize("start", ["abc", "-1", "1e9", "9" * 40, "١"])
def test_a_position_that_is_none_is_not_found(signed_in, thread, start):
    assert signed_in.get(f"/chat/{thread.pk}/earlier", {"from": start}).status_code == 404


def test_older_entries_come_as_one_partial(signed_in, thread):
    now = timezone.now()
    append(thread.pk, [user_prompt(f"Question {n}", now) for n in range(100)], at=now)
    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    assert "Question 39<" not in page
    assert "Show earlier" in page

    earlier = signed_in.get(f"/chat/{thread.pk}/earlier?from=1&before=41").content.decode()

    assert earlier.strip().startswith("<hx-partial")
    assert "Question 39<" in earlier
    assert "Question 40<" not in earlier
    whole = signed_in.get(f"/chat/{thread.pk}/?from=1").content.decode()
    assert all(f"Question {n}<" in whole for n in (0, 39, 40, 99))


def test_a_part_that_ends_before_the_newest_messages_stays_as_they_go_on(signed_in, thread):
    now = timezone.now()
    append(thread.pk, [user_prompt(f"Question {n}", now) for n in range(300)], at=now)

    cut = signed_in.get(f"/chat/{thread.pk}/?from=1").content.decode()
    whole = signed_in.get(f"/chat/{thread.pk}/?from=121").content.decode()

    assert 'data-earlier="121">Show newer' in cut
    assert 'data-from="1" data-before=""' in cut
    assert "Show newer" not in whole
    assert 'data-from="121" data-before="241"' in whole


def test_the_sources_of_a_line_are_its_messages(signed_in, line):
    url = f"/memory/lines/{line.pk}/sources"

    alone = signed_in.get(url).content.decode()
    partial = signed_in.get(url, headers={"HX-Request": "true"}).content.decode()

    assert "What do bees live in?" in partial
    assert "A hive." in partial
    assert "<!doctype html>" in alone
    assert "<!doctype html>" not in partial


@pytest.fixture
def embedded(settings):
    settings.EMBEDDED = True


def test_one_click_signs_in_on_the_same_machine(client, ada, embedded):
    page = client.get("/sign-in/").content.decode()
    assert "Continue as" in page

    assert client.post("/sign-in/", {"demo": "ada", "next": "/chat/"}).url == "/chat/"
    assert client.get("/chat/").status_code == 200


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.7"},
        {"HTTP_FORWARDED": "for=192.0.2.7"},
        {"REMOTE_ADDR": ""},
    ],
)
def test_one_click_is_for_the_same_machine_only(client, ada, embedded, elsewhere):
    assert "Continue as" not in client.get("/sign-in/", **elsewhere).content.decode()
    assert client.post("/sign-in/", {"demo": "ada"}, **elsewhere).status_code == 422
    assert client.get("/chat/").status_code == 302


def test_with_several_processes_there_is_no_one_click(client, ada, settings):
    settings.EMBEDDED = False

    assert client.post("/sign-in/", {"demo": "ada"}).status_code == 422


def test_a_password_signs_in_and_a_wrong_one_does_not(client, ada):
    wrong = client.post("/sign-in/", {"username": "ada", "password": "no"})
    assert wrong.status_code == 422
    assert "do not belong together" in wrong.content.decode()

    assert client.post("/sign-in/", {"username": "ada", "password": "ada"}).url == "/"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_signing_in_leads_nowhere_else(client, ada, embedded, target):
    assert client.post("/sign-in/", {"demo": "ada", "next": target}).url == "/"


def test_signing_out_ends_the_session(signed_in):
    assert signed_in.get("/sign-out/").status_code == 405
    signed_in.post("/sign-out/")
    assert signed_in.get("/chat/").status_code == 302


def test_only_known_themes_reach_the_page(signed_in, thread):
    signed_in.cookies["theme"] = "dark"
    assert 'data-theme="dark"' in signed_in.get(f"/chat/{thread.pk}/").content.decode()
    signed_in.cookies["theme"] = 'x"><script>'
    assert "data-theme" not in signed_in.get(f"/chat/{thread.pk}/").content.decode()


def test_a_page_costs_the_same_whatever_the_number_of_threads(
    signed_in, thread, profile, django_assert_max_num_queries
):
    for _ in range(30):
        start(thread.resource, profile)

    with django_assert_max_num_queries(36):
        signed_in.get(f"/chat/{thread.pk}/")


def test_an_unknown_agent_does_not_break_the_page(signed_in, thread, profile):
    profile.delete()

    assert signed_in.get(f"/chat/{thread.pk}/").status_code == 200
