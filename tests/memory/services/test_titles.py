"""What an Observer says of a conversation as a whole: its title, and how it is to go on."""

import re

import pytest
from asgiref.sync import sync_to_async

from agents.services.thread import start
from memory.events import ThreadRenamed
from memory.models import Thread
from memory.publish import publish_with
from memory.services.due import run_due
from memory.services.look import look
from memory.services.operate import observe_now
from tests.fakes import Models, observe_each
from tests.memory.services.play import buffer, observed, request, talk

pytestmark = pytest.mark.django_db(transaction=True)

SECTION = re.compile(r'^<thread id="([^"]+)">$(.*?)^</thread>$', re.M | re.S)


@pytest.fixture
def told():
    """Return the events that are sent."""
    events = []
    publish_with(events.append)
    yield events
    publish_with(None)


def renamings(told):
    return [event.title for event in told if isinstance(event, ThreadRenamed)]


def shows(thread, title):
    """Observe with a title until it is shown."""
    talk(thread, 6)
    buffer(thread, output=lambda found: observed(title=title, of=found))
    request(thread)


def test_a_new_title_is_told_once_and_the_same_again_is_not(thread, told):
    shows(thread, "Bees")
    assert renamings(told) == ["Bees"]

    shows(thread, "Bees")
    assert renamings(told) == ["Bees"]

    shows(thread, "Honey")
    assert renamings(told) == ["Bees", "Honey"]


def test_a_title_that_is_none_or_a_persons_is_not_told(thread, told):
    shows(thread, "ab")
    Thread.objects.filter(pk=thread.pk).update(title="Mine", title_pinned=True)
    shows(thread, "Bees")

    assert renamings(told) == []


def of_each(prompt):
    """Write a title and a task for every thread, made of its label."""
    found = SECTION.findall(prompt.split("<conversation>")[-1])
    if not found:
        return observe_each(prompt)
    blocks = [
        f'<thread id="{label}">\n* 🔴 (10:00) Said in {label}\n'
        f"<current-task>Task {label}</current-task>\n<thread-title>Title {label}</thread-title>\n"
        "</thread>"
        for label, _ in found
    ]
    return "\n".join(["<observations>", *blocks, "</observations>"])


@pytest.fixture
def pair(resource, profile):
    """Return two threads that share a memory and a call."""
    profile.memory_options = {"scope": "resource", "message_tokens": 2000, "thread_title": True}
    profile.save()
    return [start(resource, profile) for _ in range(2)]


async def test_in_a_shared_memory_each_thread_has_its_own_title_and_task(pair):
    for thread in pair:
        await sync_to_async(talk)(thread, 1)
    models = Models(observer=of_each)
    await observe_now(pair[0].pk, resolve=models)

    assert len(models.asked("observer")) == 1
    assert await run_due(pair[0].pk, resolve=models) == 0
    for thread in pair:
        label = thread.pk.hex[-8:]
        assert (await Thread.objects.aget(pk=thread.pk)).title == f"Title {label}"
        hints = (await sync_to_async(look)(thread.pk)).hints
        assert hints.current_task == f"Task {label}"
