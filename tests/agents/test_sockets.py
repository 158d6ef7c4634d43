"""A socket is there for whoever may see its page, and nothing of it stays behind."""

from contextlib import suppress

import pytest
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.sessions.models import Session
from django.urls import path

from agents.consumers import NOT_FOUND, SIGNED_OUT, ChatConsumer
from agents.rooms import rooms
from agents.services.send import send
from agents.sockets import Sockets, counted, sockets
from agents.studio.consumer import StudioConsumer
from agents.studio.hub import hub
from memory.events import MessagesAppended
from memory.publish import send as publish
from tests.agents.browser import session_of

#: The first page of a process is rendered by templates that are compiled for it.
PATIENCE = 60


def test_so_many_pages_of_one_person_are_open(settings):
    settings.SOCKETS_PER_USER = 2
    sockets = Sockets()
    assert sockets.enter(1) is None
    assert sockets.enter(1) is None
    reached = sockets.enter(1)
    assert (reached.limit, reached.allowed, reached.left) == ("pages at once", 2, 0)
    assert "close others" in reached.sentence
    assert sockets.enter(2) is None
    sockets.leave(1)
    assert sockets.enter(1) is None


def test_zero_is_no_limit_and_nobody_is_kept_who_left(settings):
    settings.SOCKETS_PER_USER = 0
    sockets = Sockets()
    for _ in range(500):
        assert sockets.enter(1) is None
    for _ in range(500):
        sockets.leave(1)
    assert not sockets._open


def page_of(consumer, thread, session):
    """Return an open page's end of a socket that a consumer of ours serves."""
    served = AuthMiddlewareStack(URLRouter([path("ws/<uuid:thread_id>/", consumer.as_asgi())]))
    cookie = (b"cookie", f"sessionid={session}".encode())
    address = f"/ws/{thread.pk}/?watch=thread:{thread.pk}"
    return WebsocketCommunicator(served, address, headers=[cookie])


async def frames_until_closed(wire):
    """Return what a page was sent until the server closed it, and the code of that."""
    heard = ""
    while (event := await wire.receive_output(timeout=PATIENCE))["type"] != "websocket.close":
        heard += event.get("text", "")
    return heard, event["code"]


class DoubtfulChat(ChatConsumer):
    recheck_seconds = -1.0


class DoubtfulStudio(StudioConsumer):
    recheck_seconds = -1.0


def leaves_the_resource(ada, thread):
    thread.resource.members.remove(ada)


def signs_out(ada, thread):
    Session.objects.all().delete()


LEAVING = [(leaves_the_resource, NOT_FOUND), (signs_out, SIGNED_OUT)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("leaves", "code"), LEAVING)
async def test_a_silent_page_hears_no_more_of_a_conversation_that_is_not_its_own_now(
    thread, ada, leaves, code
):
    wire = page_of(DoubtfulChat, thread, await sync_to_async(session_of)(ada))
    await wire.connect(timeout=PATIENCE)
    assert "gauges" in await wire.receive_from(timeout=PATIENCE)
    await sync_to_async(leaves)(ada, thread)
    await sync_to_async(send)(thread.pk, "The code is 4711")
    heard, closed = await frames_until_closed(wire)
    assert "4711" not in heard
    assert closed == code
    assert not rooms()._rooms


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("leaves", "code"), LEAVING)
async def test_a_silent_page_is_told_nothing_of_what_it_may_not_watch_any_more(
    thread, ada, leaves, code
):
    wire = page_of(DoubtfulStudio, thread, await sync_to_async(session_of)(ada))
    await wire.connect(timeout=PATIENCE)
    assert "watching" in await wire.receive_from(timeout=PATIENCE)
    await sync_to_async(leaves)(ada, thread)
    await publish(MessagesAppended(thread=thread.pk, first=1, last=2))
    assert await frames_until_closed(wire) == ("", code)
    assert not hub()._watchers


class Breaks:
    """Fail at the first frame, as when the database went away."""

    async def receive(self, text_data=None, bytes_data=None):
        raise RuntimeError("The handler broke.")


class BreakingChat(Breaks, ChatConsumer):
    pass


class BreakingStudio(Breaks, StudioConsumer):
    pass


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("consumer", [BreakingChat, BreakingStudio])
async def test_a_socket_whose_handler_broke_leaves_nothing_behind(thread, ada, consumer):
    before = held()
    wire = page_of(consumer, thread, await sync_to_async(session_of)(ada))
    await wire.connect(timeout=PATIENCE)
    await wire.receive_from(timeout=PATIENCE)
    await wire.send_to(text_data="{}")
    with pytest.raises(RuntimeError, match="The handler broke"):
        await wire.wait(timeout=PATIENCE)
    assert held() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("consumer", [ChatConsumer, StudioConsumer])
async def test_a_socket_that_is_cancelled_leaves_nothing_behind(thread, ada, consumer):
    before = held()
    wire = page_of(consumer, thread, await sync_to_async(session_of)(ada))
    await wire.connect(timeout=PATIENCE)
    await wire.receive_from(timeout=PATIENCE)
    wire.future.cancel()
    with suppress(BaseException):
        await wire.future
    assert held() == before


def held():
    """Return what this process holds for open sockets, those of other tests included."""
    kept = (rooms()._rooms, hub()._watchers, sockets._open, get_channel_layer().groups)
    return [list(each) for each in kept]


async def test_a_stream_is_counted_while_it_is_read(settings):
    settings.SOCKETS_PER_USER = 1

    async def pieces():
        yield "one"
        yield "two"

    never_begun, stream = counted("ada", pieces()), counted("ada", pieces())
    assert sockets.full("ada") is None
    assert await anext(stream) == "one"
    assert sockets.full("ada").limit == "pages at once"
    await stream.aclose()
    assert sockets.full("ada") is None
    await never_begun.aclose()
    assert sockets.full("ada") is None
