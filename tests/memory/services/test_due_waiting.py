import asyncio
from contextlib import suppress

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.models.function import FunctionModel

from memory.models import Cursor, Cycle, Observation, Revision
from memory.services import observe
from memory.services.again import cancel
from memory.services.due import run_due
from memory.services.late import late_done
from memory.services.observe import observe_while_waiting
from tests.fakes import Models
from tests.memory.services import play
from tests.memory.services.replying import raising, request, saying, talk, untouched, wrong

pytestmark = pytest.mark.django_db(transaction=True)


class Gated(Models):
    """Answer only once the gate is open; ``asked`` is set when somebody waits at it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.gate = asyncio.Event()
        self.waits = asyncio.Event()

    def __call__(self, name):
        return FunctionModel(self._late, stream_function=self._stream, model_name="fake")

    async def _late(self, messages, info):
        self.waits.set()
        await self.gate.wait()
        return self._answer(messages, info)


async def test_work_that_is_cancelled_leaves_its_cycle_to_the_lease(thread):
    await talk(thread, 2)
    models = Gated()
    work = asyncio.create_task(run_due(thread.pk, resolve=models))
    await models.waits.wait()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work

    assert (await Cycle.objects.aget()).status == "running"
    assert await untouched()


async def test_no_transaction_is_open_while_the_observer_thinks(thread):
    await talk(thread, 2)
    models = Gated()
    work = asyncio.create_task(run_due(thread.pk, resolve=models))
    await models.waits.wait()
    await talk(thread, 1)
    assert (await Cycle.objects.aget()).status == "running"
    models.gate.set()
    await work
    assert (await Observation.objects.order_by("first_position").afirst()).last_position == 4


async def test_a_turn_at_the_ceiling_waits_for_its_observation(thread, models):
    await talk(thread, 8)
    await observe_while_waiting(thread.pk, seconds=20, resolve=models)

    prepared = await request(thread, may_wait=False)
    assert prepared.blocks[0].kind == "memory"
    assert (await Cycle.objects.aget()).kind == "observe"


async def test_a_turn_goes_on_at_once_when_what_it_waits_for_is_cancelled(thread):
    await talk(thread, 8)
    models = Gated()
    waits = asyncio.create_task(observe_while_waiting(thread.pk, seconds=60, resolve=models))
    await models.waits.wait()
    await sync_to_async(cancel)((await Cycle.objects.aget()).pk)
    await asyncio.wait_for(waits, 10)

    assert not await Observation.objects.aexists()
    models.gate.set()
    await late_done()
    cycle = await Cycle.objects.aget()
    assert cycle.status == "cancelled"
    assert not await Observation.objects.aexists()
    assert await sync_to_async(look_cursor)(thread) in (None, 0)


def look_cursor(thread):
    return Cursor.objects.filter(thread=thread).values_list("buffered_through", flat=True).first()


async def test_a_turn_waits_no_longer_than_its_bound_and_the_late_result_is_kept(thread):
    await talk(thread, 8)
    models = Gated()
    await asyncio.wait_for(observe_while_waiting(thread.pk, seconds=0.01, resolve=models), 10)
    prepared = await request(thread, may_wait=False)
    assert {b.kind for b in prepared.blocks} == {"message", "prompt"}

    models.gate.set()
    await until(lambda: Revision.objects.aexists())
    assert (await request(thread, may_wait=False)).blocks[0].kind == "memory"
    assert await wrong(thread.pk) == []


async def until(asked):
    """Wait until a question about the database is answered with yes."""
    async with asyncio.timeout(20):
        while not await asked():
            await asyncio.sleep(0)


async def test_a_turn_at_the_ceiling_joins_the_observer_that_is_running(thread):
    await talk(thread, 2)
    models = Gated()
    running = asyncio.create_task(run_due(thread.pk, resolve=models))
    await models.waits.wait()
    await talk(thread, 6)
    waiting = asyncio.create_task(observe_while_waiting(thread.pk, seconds=20, resolve=models))
    assert await asyncio.wait({waiting}, timeout=0.05) == (set(), {waiting})
    models.gate.set()
    await asyncio.wait_for(waiting, 20)

    first = await Cycle.objects.order_by("started_at").afirst()
    assert (first.kind, first.status) == ("buffer", "done")
    assert not await Cycle.objects.filter(kind="observe").aexists()
    await running


async def test_a_turn_does_not_wait_for_a_lane_that_rests(thread, models):
    await talk(thread, 8)
    await run_due(thread.pk, resolve=saying(""))
    await asyncio.wait_for(observe_while_waiting(thread.pk, seconds=1000, resolve=models), 20)
    assert models.requests == []


async def test_a_turn_does_not_wait_for_a_cycle_that_lapsed(thread, models):
    await talk(thread, 8)
    claimed = await sync_to_async(observe.claim)(thread.pk)
    await sync_to_async(play.lapse)(claimed.cycle)
    await asyncio.wait_for(observe_while_waiting(thread.pk, seconds=1000, resolve=models), 20)
    assert (await Cycle.objects.aget(status="done")).kind == "observe"


async def test_a_failed_observation_lets_the_turn_go_on_raw(thread):
    await talk(thread, 8)
    await observe_while_waiting(thread.pk, seconds=20, resolve=raising(RuntimeError("boom")))
    prepared = await request(thread, may_wait=False)
    assert [b.position for b in prepared.blocks] == list(range(1, 17))
