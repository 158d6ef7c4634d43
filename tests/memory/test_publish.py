import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from django.db import transaction

from memory.events import MemoryActivated, MessagesAppended
from memory.models.ids import new_id
from memory.publish import publish, record_group, send, thread_group
from omsite.layer import LoopSafeInMemoryLayer

pytestmark = pytest.mark.django_db(transaction=True)

THREAD, RECORD = new_id(), new_id()
APPENDED = MessagesAppended(thread=THREAD, first=1, last=2)
ACTIVATED = MemoryActivated(thread=THREAD, record=RECORD, revision=7)


class Layer:
    """Note what is sent to which group."""

    def __init__(self):
        self.sent = []

    async def group_send(self, group, message):
        self.sent.append((group, message))


class Lost:
    """Fail as a broker does that is away."""

    def __init__(self, error):
        self.error = error
        self.asked = 0

    async def group_send(self, group, message):
        self.asked += 1
        raise self.error


class Hanging:
    """Take an event and never come back, as over a network that is cut."""

    def __init__(self):
        self.asked = 0

    async def group_send(self, group, message):
        self.asked += 1
        await asyncio.Event().wait()


@pytest.fixture
def using():
    previous = channel_layers.backends
    channel_layers.backends = {}

    def use(layer):
        channel_layers.backends["default"] = layer
        return layer

    yield use
    channel_layers.backends = previous


def test_an_event_is_sent_after_commit_and_not_before(using):
    layer = using(Layer())
    with transaction.atomic():
        publish(APPENDED)
        assert layer.sent == []
    assert [group for group, _ in layer.sent] == [thread_group(THREAD)]


def test_an_event_of_a_transaction_that_was_rolled_back_is_never_sent(using):
    layer = using(Layer())
    with transaction.atomic():
        publish(APPENDED)
        transaction.set_rollback(True)
    assert layer.sent == []


def test_an_event_about_a_record_goes_to_its_group_too(using):
    layer = using(Layer())
    publish(ACTIVATED)
    assert [group for group, _ in layer.sent] == [thread_group(THREAD), record_group(RECORD)]


def test_an_event_travels_as_ids_and_numbers_in_json(using):
    layer = using(Layer())
    publish(ACTIVATED)
    frame = layer.sent[0][1]

    assert frame["type"] == "memory.event"
    assert json.loads(json.dumps(frame["event"])) == {
        "kind": "memory.activated",
        "thread": str(THREAD),
        "record": str(RECORD),
        "revision": 7,
    }


def test_events_keep_the_order_they_were_published_in(using):
    layer = using(Layer())
    with transaction.atomic():
        publish(APPENDED)
        publish(ACTIVATED)
    kinds = [message["event"]["kind"] for _, message in layer.sent]
    assert kinds == ["messages.appended", "memory.activated", "memory.activated"]


@pytest.mark.parametrize("error", [ConnectionError("away"), RuntimeError("boom"), OSError()])
def test_a_layer_that_is_away_never_undoes_a_commit(using, error):
    using(Lost(error))
    done = []
    with transaction.atomic():
        publish(APPENDED)
        transaction.on_commit(lambda: done.append(True))
    assert done == [True]


async def test_a_layer_that_failed_is_left_alone_for_a_moment(using):
    layer = using(Lost(ConnectionError("away")))
    await send(APPENDED)
    await send(APPENDED)
    assert layer.asked == 1


async def test_a_layer_that_hangs_holds_nobody_up_twice(using):
    layer = using(Hanging())
    await asyncio.wait_for(send(APPENDED, seconds=0.01), 10)
    await asyncio.wait_for(send(APPENDED, seconds=1000), 10)
    assert layer.asked == 1


async def test_an_event_can_be_published_from_the_databases_thread_of_a_running_loop(using):
    layer = using(LoopSafeInMemoryLayer())
    await layer.group_add(thread_group(THREAD), "page")
    await sync_to_async(publish)(APPENDED)
    frame = await asyncio.wait_for(layer.receive("page"), 10)
    assert frame["event"]["last"] == 2


async def test_groups_of_different_threads_hear_nothing_of_each_other(using):
    layer = using(LoopSafeInMemoryLayer())
    await layer.group_add(thread_group(new_id()), "page")
    await send(APPENDED)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive("page"), 0.05)


def test_group_names_are_what_every_layer_allows():
    for name in (thread_group(THREAD), record_group(RECORD)):
        LoopSafeInMemoryLayer().require_valid_group_name(name)
