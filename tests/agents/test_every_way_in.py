"""Every way to send a message meets the same limits, and answers in its own form."""

from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from agents import tokens
from agents.models import Turn
from agents.services.send import send
from memory.models import Thread
from tests.agents.browser import Socket, session_of

pytestmark = pytest.mark.django_db

SCRIPT = {"HX-Request": "true"}


@pytest.fixture
def full(settings, thread, ada):
    """Let Ada have sent as many messages as she may, one of which went wrong."""
    settings.SENDS_PER_MINUTE = 1
    turn = send(thread.pk, "Hello", author=ada)
    Turn.objects.filter(pk=turn.pk).update(status="failed", first_position=1, last_position=2)
    return thread


def forms(thread):
    """Return the forms that send a message, each with its fields."""
    return {
        f"/chat/{thread.pk}/send": {"text": "Keep me", "key": str(uuid4())},
        f"/chat/{thread.pk}/send?again": {"text": "Keep me", "again": "1"},
        f"/chat/{thread.pk}/again": {"turn": "1"},
        f"/chat/{thread.pk}/turns/1/retry": {},
    }


def assert_nothing_was_sent():
    assert Turn.objects.count() == 1
    assert Thread.objects.count() == 1


def test_a_script_is_told_when_to_send_again(full, ada):
    client = Client()
    client.force_login(ada)
    for path, fields in forms(full).items():
        answer = client.post(path, fields, headers=SCRIPT)
        assert answer.status_code == 429, path
        assert 0 < int(answer["Retry-After"]) <= 60
        assert answer["Content-Type"].startswith("text/plain")
        assert "You sent 1 message within a minute" in answer.content.decode()
    assert_nothing_was_sent()


def test_without_a_script_what_was_typed_is_still_in_its_box(full, ada):
    client = Client()
    client.force_login(ada)
    for path, fields in forms(full).items():
        answer = client.post(path, fields, follow=True)
        page = answer.content.decode()
        assert "You sent 1 message within a minute" in page, path
        if "text" in fields:
            assert answer.status_code == 429
            assert "Retry-After" in answer
            assert ">Keep me</textarea>" in page
            assert ('id="again" value="1"' in page) == ("again" in fields)
    assert_nothing_was_sent()


def test_a_program_is_told_in_numbers_too(full, ada):
    _, secret = tokens.make(ada, "Test")
    headers = {"Authorization": f"Bearer {secret}"}
    for path, body in (("messages", {"text": "Hello"}), ("turns/1/retry", {})):
        answer = Client().post(
            f"/api/v1/threads/{full.pk}/{path}", body, "application/json", headers=headers
        )
        assert answer.status_code == 429, path
        problem = answer.json()
        wait = problem.pop("retry_after")
        assert answer["Retry-After"] == str(wait)
        assert 0 < wait <= 60
        assert problem.items() >= {
            ("title", "Too Many Requests"),
            ("limit", "messages per minute"),
            ("allowed", 1),
            ("used", 1),
            ("left", 0),
        }
    assert_nothing_was_sent()


def test_what_is_too_long_is_refused_for_good(settings, thread, ada):
    settings.MESSAGE_CHARACTERS = 4
    _, secret = tokens.make(ada, "Test")
    answer = Client().post(
        f"/api/v1/threads/{thread.pk}/messages",
        {"text": "Hello"},
        "application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 422
    assert "Retry-After" not in answer
    assert answer.json()["retry_after"] is None


@pytest.mark.django_db(transaction=True)
async def test_a_page_is_told_which_message_and_how_long(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 1
    session = await sync_to_async(session_of)(ada)
    async with Socket(thread.pk, session) as socket:
        await socket.say("send", text="Hello", key=str(uuid4()))
        await socket.hear("accepted")
        await Turn.objects.aupdate(status="failed")
        key = str(uuid4())
        await socket.say("send", text="Hello", key=key)
        refusal = await socket.hear("error")
        await socket.say("retry", turn=1)
        again = await socket.hear("error")

    assert (refusal["code"], refusal["key"], refusal["left"]) == ("limited", key, 0)
    assert 0 < refusal["retry_after"] <= 60
    assert again["limit"] == "messages per minute"
    assert await Turn.objects.acount() == 1
