"""Send every frame over every socket as everybody, and hold the answers against a table."""

import inspect
import json
import re
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Group, User

from agents.consumers import NOT_FOUND, SIGNED_OUT, ChatConsumer
from agents.routing import websocket_urlpatterns
from agents.studio.hub import Scope
from memory.models import MemoryRecord
from omsite.asgi import application
from tests.agents.browser import HERE, Socket, session_of

pytestmark = pytest.mark.django_db(transaction=True)

#: Each of the people: their groups, and whether they are a member of the resource.
PEOPLE = {
    "nobody": None,
    "stranger": ((), False),
    "viewer": (("viewers",), True),
    "member": ((), True),
    "operator": (("operators",), False),
    "admin": (("admins",), False),
}
READS, TALKS = ("viewer", "member", "operator", "admin"), ("member", "admin")
#: Every frame of a chat page, and who may send it.
FRAMES = {
    "have": ({"etags": {}}, READS),
    "ping": ({}, READS),
    "send": ({"text": "Hello"}, TALKS),
    "stop": ({}, TALKS),
    "withdraw": ({"turn": 1}, TALKS),
    "retry": ({"turn": 1}, TALKS),
}
#: All that a page of the Studio can watch, and who may.
WATCHED = {
    "thread": READS,
    "record": READS,
    "resource": READS,
    "everything": ("operator", "admin"),
}
REFUSED = "Your account may read this conversation, not write in it."


@pytest.fixture
def session(resource):
    """Return what makes a session of one of the people."""

    def session(name):
        if PEOPLE[name] is None:
            return ""
        groups, member = PEOPLE[name]
        user = User.objects.create_user(name)
        user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
        if member:
            resource.members.add(user)
        return session_of(user)

    return sync_to_async(session)


def test_every_socket_is_walked_here():
    assert {str(each.pattern) for each in websocket_urlpatterns} == {
        "ws/chat/<uuid:thread_id>/",
        "ws/studio/",
    }


def cases(function):
    """Return the words that a function tells apart."""
    told = re.findall(r"case (.*):", inspect.getsource(function))
    return set(re.findall(r'"(\w+)"', " ".join(told)))


def test_every_frame_of_a_chat_page_is_in_the_table():
    assert cases(ChatConsumer._handle) == set(FRAMES)


def test_all_that_can_be_watched_is_in_the_table():
    assert cases(Scope.parse) == set(WATCHED)


@pytest.mark.parametrize("name", PEOPLE)
async def test_each_frame_is_answered_as_the_table_says(session, thread, name):
    async with Socket(thread.pk, await session(name)) as socket:
        if name not in READS:
            assert await socket.closed() == (SIGNED_OUT if name == "nobody" else NOT_FOUND)
            return
        for kind, (fields, who) in FRAMES.items():
            await socket.say(kind, **fields, **({"key": str(uuid4())} if kind == "send" else {}))
            if kind != "ping":
                await socket.say("ping")
            assert await refused(socket) == (name not in who), kind


async def refused(socket):
    """Tell whether a right was missing for what was sent before the last ping."""
    found = False
    while True:
        frame = json.loads(await socket.wire.receive_from(timeout=5))
        found |= frame.get("message") == REFUSED
        if frame["type"] == "pong":
            return found


@pytest.mark.parametrize("name", PEOPLE)
async def test_what_is_watched_is_what_the_table_says(session, thread, name):
    record = await MemoryRecord.objects.acreate(resource_id=thread.resource_id, thread=thread)
    keys = {"thread": thread.pk, "record": record.pk, "resource": thread.resource_id}
    cookie = f"sessionid={await session(name)}".encode()
    for kind, who in WATCHED.items():
        watch = f"{kind}:{keys[kind]}" if kind in keys else kind
        wire = WebsocketCommunicator(
            application,
            f"/ws/studio/?watch={watch}",
            headers=[(b"origin", HERE), (b"host", b"localhost"), (b"cookie", cookie)],
        )
        await wire.connect(timeout=5)
        event = await wire.receive_output(timeout=5)
        if name in who:
            assert json.loads(event["text"])["type"] == "watching", kind
        else:
            assert event["code"] == (SIGNED_OUT if name == "nobody" else NOT_FOUND), kind
        await wire.disconnect()
