from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.models import Turn
from agents.studio.hub import BadScope, Hub, Scope, count, read, scopes
from memory.models import Cycle, MemoryRecord, Resource, Revision, Thread


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
    with django_assert_max_num_queries(10):
        whole = count(watched)
    assert set(found) == watched
    assert set(whole) == {each for each in watched if each.kind in ("resource", "everything")}


def run(thread):
    return Turn.objects.create(
        thread=thread,
        number=1,
        status=Turn.Status.RUNNING,
        lease_token=uuid4(),
        lease_expires_at=timezone.now(),
    )


def think(thread):
    return Cycle.objects.create(
        record=record_of(thread),
        thread=thread,
        lane="reflector",
        kind=Cycle.Kind.REFLECT,
        epoch=0,
        lease_expires_at=timezone.now(),
    )


HAPPENING = [
    lambda thread: Thread.objects.take_positions(thread.pk, 1),
    lambda thread: Turn.objects.create(thread=thread, number=1, prompt="Hello"),
    run,
    think,
    lambda thread: [
        MemoryRecord.objects.filter(pk=record_of(thread).pk).update(revision=1),
        Revision.objects.create(
            record=record_of(thread), number=1, cause="note", tokens_before=0, tokens_after=0
        ),
    ],
]


def record_of(thread):
    return MemoryRecord.objects.get_or_create(resource=thread.resource, thread=thread)[0]


@pytest.mark.parametrize("happens", HAPPENING)
def test_a_glance_sees_what_happens_in_a_resource_and_in_all(thread, happens):
    record_of(thread)
    other = Resource.objects.create(key="theirs", name="Theirs")
    watched = [Scope("resource", thread.resource_id), Scope("everything", None)]
    beside = Scope("resource", other.pk)
    before = read({*watched, beside})
    assert read({*watched, beside}) == before
    happens(thread)
    after = read({*watched, beside})
    assert [after[each] != before[each] for each in watched] == [True, True]
    assert after[beside] == before[beside]


@pytest.mark.django_db(transaction=True)
async def test_what_a_glance_does_not_see_is_counted_less_often_the_longer_it_takes():
    resource = await Resource.objects.acreate(key="mine", name="Mine")
    thread = await Thread.objects.acreate(resource=resource, agent="guide")
    watched = frozenset({Scope("resource", resource.pk), Scope("everything", None)})
    told = {}
    for rest in (0, 1e9):
        hub, page = Hub(rest=rest), Page()
        hub._watchers = {page: watched}
        await hub.look()
        thread.title += "A longer name"
        await thread.asave(update_fields=["title"])
        await hub.look()
        told[rest] = page.told
    assert told == {0: ["watch"], 1e9: []}
    await sync_to_async(Thread.objects.take_positions)(thread.pk, 1)
    await hub.look()
    assert page.told == ["watch"]
