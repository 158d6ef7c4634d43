"""Rooms of one process side by side."""

import asyncio
import threading
import time
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents import live
from agents.rooms import Room, Rooms
from agents.services.thread import start
from memory.models import Resource, Thread
from memory.services.look import look
from tests.agents.test_page import talk

pytestmark = pytest.mark.django_db(transaction=True)


class Page:
    """Note what a page is offered."""

    def __init__(self):
        self.offered = []

    async def offer(self, regions):
        self.offered.append(list(regions))

    async def dismiss(self):
        raise AssertionError("its thread is there")


async def test_a_room_that_takes_long_to_render_waits_for_more():
    read = []

    def slowly(thread_id, names, heard):
        read.append(names)
        time.sleep(0.2)
        return None, {}

    room = Room(uuid4(), pause=0, read=slowly)
    room.mark({"title"})
    await room.settle()
    room.mark({"queue"})
    await asyncio.sleep(0.05)
    room.mark({"task"})
    await room.settle()
    assert read == [{"title"}, {"queue", "task"}]


async def test_a_page_just_loaded_is_not_sent_what_is_about_to_be_rendered_anew():
    begun, go_on = threading.Event(), threading.Event()

    def read(thread_id, names, heard):
        begun.set()
        go_on.wait()
        return None, {name: live.Rendered(name, "new", ()) for name in names}

    room = Room(uuid4(), pause=0, read=read)
    room.shown = {name: live.Rendered(name, "old", ()) for name in ("title", "queue", "task")}
    room.mark({"title"})
    await asyncio.to_thread(begun.wait)
    room.mark({"queue"})
    fresh = {"title": "new", "queue": "new", "task": "new"}
    assert [each.name for each in room.differing(fresh)] == ["task"]

    go_on.set()
    await room.settle()
    assert [each.name for each in room.differing(fresh)] == ["task"]
    assert {each.name for each in room.differing({})} == {"title", "queue", "task"}


def said(text):
    return {"kind": "turn.delta", "turn": 1, "after": 0, "text": text}


async def test_what_is_being_said_waits_for_nothing_that_is_rendered():
    begun, go_on = threading.Event(), threading.Event()

    def read(thread_id, names, heard):
        begun.set()
        go_on.wait()
        return None, {}

    room, page = Room(uuid4(), pause=0, read=read), Page()
    room.members.add(page)
    room.mark({"gauges"})
    await asyncio.to_thread(begun.wait)
    for text in ("Bees", "Bees live in"):
        room.event(said(text))
        await asyncio.sleep(0.01)
    told = [[region.html for region in regions] for regions in page.offered]
    assert ["Bees" in first for (first,) in told] == [True, True]
    assert "Bees live in" in told[-1][0]

    go_on.set()
    await room.settle()


async def test_what_was_heard_is_left_to_the_rows_where_they_may_say_that_it_is_over():
    begun, go_on, read = threading.Event(), threading.Event(), []

    def slowly(thread_id, names, heard):
        begun.set()
        go_on.wait()
        read.append(set(names))
        return None, {name: live.Rendered(name, "of rows", ()) for name in names}

    room, page = Room(uuid4(), pause=0, read=slowly), Page()
    room.members.add(page)
    room.event({"kind": "turn.closed", "thread": str(room.thread_id)})
    await asyncio.to_thread(begun.wait)
    room.event(said("Too late"))
    await asyncio.sleep(0.01)
    assert page.offered == []

    go_on.set()
    await room.settle()
    assert [names & {"draft"} for names in read] == [{"draft"}, {"draft"}]
    assert room.shown["draft"].etag == "of rows"


async def test_a_thread_that_talks_moves_the_lists_of_all_other_pages_at_once(
    thread, resource, profile
):
    others = [thread, await sync_to_async(start)(resource, profile)]
    talking = await sync_to_async(start)(resource, profile)
    rooms, pages = Rooms(), [Page(), Page()]
    entered = [rooms.enter(t.pk, page) for t, page in zip(others, pages, strict=True)]
    for room in entered:
        await room.settle()
    await rooms.look()
    for page in pages:
        page.offered.clear()

    later = timezone.now() + timedelta(minutes=5)
    await Thread.objects.filter(pk=talking.pk).aupdate(last_active_at=later)
    await rooms.look()
    await rooms.look()

    for each, page in zip(others, pages, strict=True):
        fresh = await sync_to_async(live.render)(each.pk, {"threads"}, now=timezone.now())
        assert [[region.etag for region in regions] for regions in page.offered] == [
            [fresh["threads"].etag]
        ]
    for room, page in zip(entered, pages, strict=True):
        rooms.leave(room, page)


async def test_what_one_conversation_says_moves_all_pages_that_share_its_memory(
    thread, resource, profile
):
    await Resource.objects.filter(pk=resource.pk).aupdate(scope="resource")
    others = [thread, *[await sync_to_async(start)(resource, profile) for _ in range(3)]]
    talking = await sync_to_async(start)(resource, profile)
    await sync_to_async(look)(talking.pk)
    rooms, pages = Rooms(), [Page() for _ in others]
    entered = [rooms.enter(t.pk, page) for t, page in zip(others, pages, strict=True)]
    for room in entered:
        await room.settle()
    await rooms.look()
    for page in pages:
        page.offered.clear()

    await sync_to_async(talk)(talking, 1)
    await rooms.look()

    for each, page in zip(others, pages, strict=True):
        fresh = await sync_to_async(live.render)(each.pk, live.BESIDE, now=timezone.now())
        assert [{region.name: region.etag for region in offer} for offer in page.offered] == [
            {name: region.etag for name, region in fresh.items()}
        ]
    assert "Question 0 about bees" in fresh["others"].html
    for room, page in zip(entered, pages, strict=True):
        rooms.leave(room, page)


async def test_a_room_that_is_rendering_does_not_show_what_was_rendered_for_it_elsewhere(thread):
    late = live.Rendered("title", "old", (b"<h1>old</h1>",))
    room, page = Room(thread.pk, pause=0), Page()
    room.members.add(page)
    room.mark({"title"})

    await room.show([late], {})
    await room.settle()

    fresh = await sync_to_async(live.render)(thread.pk, {"title"}, now=timezone.now())
    assert [offer[0].etag for offer in page.offered] == [fresh["title"].etag]
