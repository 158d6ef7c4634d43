"""Rooms of one process side by side."""

import asyncio
import time
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents import live
from agents.rooms import Room, Rooms
from agents.services.thread import start
from memory.models import Thread

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
