import json
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import Client

from agents.consumers import BROKEN, NOT_FOUND, SIGNED_OUT
from agents.events import TurnDelta
from memory.events import MessagesAppended
from memory.models import Resource, Thread
from memory.publish import send
from omsite.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def world():
    """Return a user's session, their thread, and one that is not theirs."""
    user = User.objects.create_user("mia")
    mine, theirs = (Resource.objects.create(key=key, name=key) for key in ("mine", "theirs"))
    mine.members.add(user)
    client = Client()
    client.force_login(user)
    threads = [Thread.objects.create(resource=each, agent="guide") for each in (mine, theirs)]
    return client.cookies["sessionid"].value, *threads


def socket(watch, session=""):
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
    if session:
        headers.append((b"cookie", f"sessionid={session}".encode()))
    return WebsocketCommunicator(application, f"/ws/studio/?watch={watch}", headers=headers)


async def closed(wire):
    assert (await wire.connect(timeout=5))[0]
    return (await wire.receive_output(timeout=5))["code"]


async def watching(wire):
    """Connect, and return the first frame: from now on the page is told what moves."""
    await wire.connect(timeout=5)
    return json.loads(await wire.receive_from(timeout=5))["type"]


async def test_a_page_is_told_once_of_what_moves_at_once():
    session, mine, _ = await world()
    wire = socket(f"thread:{mine.pk}", session)
    assert await watching(wire) == "watching"
    for last in (2, 4):
        await send(MessagesAppended(thread=mine.pk, first=1, last=last))
    frame = json.loads(await wire.receive_from(timeout=5))
    assert (frame["type"], frame["what"]) == ("moved", "messages.appended")
    assert await wire.receive_nothing(timeout=0.3)
    await wire.disconnect()


async def test_the_words_of_a_running_answer_are_not_news():
    session, mine, _ = await world()
    wire = socket(f"thread:{mine.pk}", session)
    assert await watching(wire) == "watching"
    await send(TurnDelta(thread=mine.pk, turn=1, after=1, text="Hel"))
    assert await wire.receive_nothing(timeout=0.3)
    await wire.disconnect()


async def test_a_ping_is_answered_so_that_a_page_knows_how_far_away_its_server_is():
    session, mine, _ = await world()
    wire = socket(f"thread:{mine.pk}", session)
    assert await watching(wire) == "watching"
    await wire.send_to(text_data=json.dumps({"type": "have", "etags": {}}))
    await wire.send_to(text_data=json.dumps({"type": "ping"}))
    assert json.loads(await wire.receive_from(timeout=5))["type"] == "pong"
    assert await wire.receive_nothing(timeout=0.3)
    await wire.disconnect()


async def test_nobody_watches_without_signing_in():
    _, mine, _ = await world()
    assert await closed(socket(f"thread:{mine.pk}")) == SIGNED_OUT


async def test_nobody_watches_what_is_not_theirs():
    session, mine, theirs = await world()
    for watch in (
        f"thread:{theirs.pk}",
        f"thread:{mine.pk},thread:{theirs.pk}",
        f"resource:{theirs.resource_id}",
        f"record:{uuid4()}",
        "everything",
    ):
        assert await closed(socket(watch, session)) == NOT_FOUND


async def test_what_names_nothing_is_refused():
    session, _, _ = await world()
    assert await closed(socket("the weather", session)) == BROKEN
