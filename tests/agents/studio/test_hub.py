from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from agents.studio.hub import BadScope, Hub, Scope, read, scopes
from memory.models import Resource, Thread


class Page:
    def __init__(self):
        self.told = []

    async def moved(self, kind):
        self.told.append(kind)


@pytest.fixture
def thread(db):
    resource = Resource.objects.create(key="mine", name="Mine")
    return Thread.objects.create(resource=resource, agent="guide")


@pytest.mark.parametrize("text", ["thread:1", "room:5", "resource:", "everything:1", "record"])
def test_what_names_nothing_is_refused(text):
    with pytest.raises(BadScope):
        scopes(text)


def test_scopes_are_read_from_a_list():
    key = uuid4()
    assert scopes(f"thread:{key},resource:5,everything") == {
        Scope("thread", key),
        Scope("resource", 5),
        Scope("everything", None),
    }


def test_a_page_cannot_watch_without_end():
    with pytest.raises(BadScope, match="40 things, not 41"):
        scopes(",".join(f"resource:{n}" for n in range(41)))


@pytest.mark.django_db(transaction=True)
async def test_a_page_is_told_once_something_it_watches_moved():
    resource = await Resource.objects.acreate(key="mine", name="Mine")
    thread = await Thread.objects.acreate(resource=resource, agent="guide")
    hub, here, elsewhere = Hub(), Page(), Page()
    hub._watchers = {
        here: frozenset({Scope("resource", resource.pk)}),
        elsewhere: frozenset({Scope("resource", resource.pk + 1)}),
    }
    await hub.look()
    await hub.look()
    assert here.told == []
    await sync_to_async(Thread.objects.take_positions)(thread.pk, 1)
    await hub.look()
    await hub.look()
    assert (here.told, elsewhere.told) == (["watch"], [])


def test_all_pages_together_cost_few_statements(thread, django_assert_max_num_queries):
    watched = {Scope("thread", thread.pk), Scope("everything", None)}
    watched |= {Scope("resource", thread.resource_id), Scope("record", uuid4())}
    watched |= {Scope("resource", 1000 + n) for n in range(30)}
    with django_assert_max_num_queries(10):
        found = read(watched)
    assert set(found) == watched
