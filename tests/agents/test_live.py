from random import Random

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.utils import timezone

from agents import live
from agents.events import KINDS
from agents.live import NAMES, REGIONS, STAMPED
from agents.rooms import Room
from agents.services.thread import start
from agents.stamps import stamps
from memory.models import Resource
from memory.models.state import read_state
from memory.publish import record_group, thread_group
from memory.services.look import look
from tests.agents.play import Play, profile

STEPS = 40
EVENTFUL = range(6)
#: Some rows change a page alone, without another that says the same, in few lives only.
MANY = range(24)


def quick_and_slow(seeds):
    """Return the seeds as parameters, all but the first two left to the slow tests."""
    return [
        seed if place < 2 else pytest.param(seed, marks=pytest.mark.slow)
        for place, seed in enumerate(seeds)
    ]


class Page:
    """Hold what a browser shows: it takes frames as they come, and tells its etags."""

    def __init__(self, lose=lambda frames: frames):
        self.shows = {}
        self.lose = lose

    async def offer(self, regions):
        frame = [each for each in regions if self.etags.get(each.name) != each.etag]
        for arrived in self.lose([frame]):
            self.shows.update((each.name, each) for each in arrived)

    async def dismiss(self):
        self.shows = {}

    @property
    def etags(self):
        return {name: each.etag for name, each in self.shows.items()}


class Wire:
    """Carry frames badly: some are dropped, some come twice, some later than their successors."""

    def __init__(self, random):
        self.random = random
        self.late = []

    def __call__(self, frames):
        arrived = []
        for frame in frames:
            fate = self.random.random()
            if fate < 0.2:
                continue
            if fate < 0.4:
                self.late.append(frame)
                continue
            arrived += [frame, frame] if fate < 0.6 else [frame]
        if self.late and self.random.random() < 0.5:
            arrived.append(self.late.pop(self.random.randrange(len(self.late))))
        return arrived


class Stage:
    """Let a conversation happen before an open page."""

    def __init__(self, thread, seed, *, table=REGIONS, faulty=False):
        self.play = Play(thread, seed)
        self.room = Room(thread.pk, table=table, pause=0)
        self.events = Wire(Random(seed)) if faulty else lambda frames: frames
        self.page = Page(Wire(Random(-seed)) if faulty else lambda frames: frames)
        self.room.members.add(self.page)

    async def open(self):
        """Load the page and listen."""
        self.layer = get_channel_layer()
        self.channel = await self.layer.new_channel()
        self.groups = set()
        await self._listen()
        self.page.shows = await self.fresh()
        self.room.shown = dict(self.page.shows)

    async def _listen(self):
        """Hear of the thread, and of the memory it shares with others: see the consumer."""
        record = (await sync_to_async(read_state)(self.play.thread_id)).record
        wanted = {thread_group(self.play.thread_id)}
        if record is not None and record.thread_id is None:
            wanted.add(record_group(record.pk))
        for group in wanted - self.groups:
            await self.layer.group_add(group, self.channel)
        for group in self.groups - wanted:
            await self.layer.group_discard(group, self.channel)
        self.groups = wanted

    async def step(self):
        """Let one thing happen and the page hear of it."""
        await self.play.step()
        for event in self.events(await self._heard()):
            self.room.event(event)
            await self.room.settle()

    async def _heard(self):
        await self.layer.send(self.channel, {"type": "last"})
        heard = []
        while (frame := await self.layer.receive(self.channel))["type"] != "last":
            heard.append(frame["event"])
        if any(event["kind"] == "scope.changed" for event in heard):
            await self._listen()
        return heard

    async def heal(self):
        """Do what the watch does every two seconds, and the page every five."""
        found = await sync_to_async(stamps)([self.play.thread_id])
        self.room.mark(self.room.stale(found[self.play.thread_id]))
        await self.room.settle()
        self.page.lose = lambda frames: frames
        await self.page.offer(self.room.differing(self.page.etags))

    async def fresh(self):
        now = timezone.now()
        return await sync_to_async(live.render)(self.play.thread_id, NAMES, now=now)

    async def differing(self):
        """Return the names of the regions in which the page is not as a fresh one."""
        fresh = await self.fresh()
        return {name for name in NAMES if self.page.etags.get(name) != fresh[name].etag}


class Beside(Stage):
    """Let a conversation happen while the page of another one of the same memory is open."""

    def __init__(self, thread, other, seed):
        super().__init__(thread, seed)
        self.talk = Play(other, seed, without={"change_scope"})

    async def step(self):
        """Let one thing happen in the other conversation, and the page hear of it."""
        name = await self.talk.step()
        for event in await self._heard():
            self.room.event(event)
        await self.room.settle()
        return name


@pytest.fixture
def conversation(resource):
    """Return a function that begins one more conversation."""
    player = profile()
    return sync_to_async(lambda: start(resource, player))


async def first_difference(thread, seed, table=REGIONS, life=None):
    """Return the step after which an undisturbed page is stale, and where; None if never.

    A life is the steps that are taken one after another; without one, forty random ones are.
    """
    stage = Stage(thread, seed, table=table)
    await stage.open()
    for name in life or [None] * STEPS:
        happened = await stage.play.step(name)
        for event in await stage._heard():
            stage.room.event(event)
        await stage.room.settle()
        if differing := await stage.differing():
            return seed, happened, differing
    return None


#: A turn that makes memory grow by what was said.
TURN = ("queue", "begin", "prepare", "answer", "close", "claim_observation", "observe")
#: Lives that random steps do not lead to: observations grow until they are condensed.
LIVES = {
    "memory.reflected": (*TURN * 6, "claim_reflection", "reflect"),
    "memory.restored": (*TURN * 2, "note", "edit", "restore"),
    "memory.cleared": (*TURN * 2, "note", "clear"),
    "memory.pinned": (*TURN * 2, "note", "pin"),
    "memory.edited": (*TURN * 2, "note", "edit"),
}


def test_every_kind_of_event_has_a_row():
    assert set(REGIONS) == set(KINDS)


def test_rows_name_regions_that_exist():
    assert {name for names in REGIONS.values() for name in names} <= set(NAMES)


def test_every_region_can_be_rendered_and_is_found_stale_by_some_stamp():
    assert set(live.CONTEXTS) == set(STAMPED) == set(NAMES)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in EVENTFUL[1:])]
)
async def test_a_page_and_its_events_equal_a_fresh_page_after_every_step(conversation, seed):
    assert await first_difference(await conversation(), seed) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(REGIONS))
async def test_without_the_row_of_one_kind_some_page_becomes_stale(conversation, kind):
    table = {each: names for each, names in REGIONS.items() if each != kind}
    for seed in MANY:
        if await first_difference(await conversation(), seed, table, LIVES.get(kind)):
            return
    pytest.fail("No page became stale: this row changes nothing.")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "seed", [100, 101, *(pytest.param(n, marks=pytest.mark.slow) for n in range(102, 116))]
)
async def test_a_page_that_lost_frames_equals_a_fresh_page_once_it_is_compared(conversation, seed):
    stage = Stage(await conversation(), seed, faulty=True)
    await stage.open()
    for _ in range(STEPS):
        await stage.step()

    await stage.heal()

    assert await stage.differing() == set()


#: What counts raw messages, or lists conversations by when something was said in them.
COMPARED_ONLY = {"gauges", "others", "threads"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", quick_and_slow(range(200, 208)))
async def test_a_page_follows_what_others_make_of_a_shared_memory(conversation, resource, seed):
    await Resource.objects.filter(pk=resource.pk).aupdate(scope="resource")
    stage = Beside(await conversation(), await conversation(), seed)
    await sync_to_async(look)(stage.play.thread_id)
    await stage.open()
    for _ in range(STEPS):
        name = await stage.step()
        assert await stage.differing() <= COMPARED_ONLY, name

    await stage.heal()

    assert await stage.differing() == set()


@pytest.mark.django_db(transaction=True)
async def test_the_second_page_changes_when_what_the_first_said_is_observed(conversation, resource):
    await Resource.objects.filter(pk=resource.pk).aupdate(scope="resource")
    first, second = await conversation(), await conversation()
    play = Play(first, 0)
    await sync_to_async(look)(second.pk)
    stage = Stage(second, 0)
    await stage.open()
    for _ in range(12):
        await play._insert()
    await play._claim_observation()
    while play.observing is not None:
        await play._observe()
        await play._claim_observation()

    for event in await stage._heard():
        stage.room.event(event)
    await stage.room.settle()

    assert "was said in message" in stage.page.shows["chunks"].html
    assert f"/chat/{first.pk}/" in stage.page.shows["operations"].html
