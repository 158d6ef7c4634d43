import asyncio
import threading
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from memory.dispatch import LoopDispatcher, Switch
from memory.models import Resource

ONE, OTHER = uuid4(), uuid4()


class Work:
    """Note which threads were run; each run lasts until it is let go."""

    def __init__(self):
        self.runs = []
        self.ended = []
        self.gates = asyncio.Queue()

    async def __call__(self, thread_id):
        gate = asyncio.Event()
        self.runs.append(thread_id)
        self.gates.put_nowait(gate)
        try:
            await gate.wait()
        finally:
            self.ended.append(thread_id)

    async def let_go(self):
        async with asyncio.timeout(10):
            (await self.gates.get()).set()


class Bell:
    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)


async def turns(count=5):
    """Let the loop turn a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def work():
    return Work()


@pytest.fixture
async def dispatcher(work):
    dispatcher = LoopDispatcher(asyncio.get_running_loop(), work)
    yield dispatcher
    await dispatcher.stop()


async def test_a_wake_up_runs_the_thread(dispatcher, work):
    dispatcher.wake(ONE)
    await work.let_go()
    await turns()
    assert work.runs == work.ended == [ONE]


async def test_threads_run_beside_each_other(dispatcher, work):
    dispatcher.wake(ONE)
    dispatcher.wake(OTHER)
    await turns()
    assert work.runs == [ONE, OTHER]
    assert work.ended == []


async def test_one_thread_runs_once_at_a_time(dispatcher, work):
    for _ in range(5):
        dispatcher.wake(ONE)
        await turns()
    assert work.runs == [ONE]


async def test_a_thread_woken_while_it_runs_runs_once_more_however_often_it_was_woken(
    dispatcher, work
):
    for _ in range(5):
        dispatcher.wake(ONE)
        await turns()
    await work.let_go()
    await work.let_go()
    await turns()
    assert work.runs == [ONE, ONE]
    assert work.ended == [ONE, ONE]


async def test_a_run_that_fails_does_not_end_the_waking():
    runs = []

    async def fail(thread_id):
        runs.append(thread_id)
        if len(runs) == 1:
            raise RuntimeError("boom")

    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    dispatcher = LoopDispatcher(loop, fail)
    dispatcher.wake(ONE)
    await turns()
    dispatcher.wake(ONE)
    await turns()
    assert runs == [ONE, ONE]


async def test_a_thread_can_be_woken_from_a_foreign_thread(dispatcher, work):
    foreign = threading.Thread(target=dispatcher.wake, args=(ONE,))
    foreign.start()
    await work.let_go()
    await asyncio.to_thread(foreign.join)
    assert work.runs == [ONE]


async def test_work_woken_out_of_the_databases_thread_can_reach_the_database():
    reached = asyncio.Event()

    async def ask(thread_id):
        await sync_to_async(lambda: None)()
        reached.set()

    dispatcher = LoopDispatcher(asyncio.get_running_loop(), ask)
    await sync_to_async(dispatcher.wake)(ONE)
    await asyncio.wait_for(reached.wait(), 10)
    await dispatcher.stop()


async def test_stopping_cancels_the_work_and_forgets_what_was_to_follow(dispatcher, work):
    dispatcher.wake(ONE)
    await turns()
    dispatcher.wake(ONE)
    await turns()
    await dispatcher.stop()
    await turns()
    assert work.runs == work.ended == [ONE]


async def test_work_may_be_given_time_to_end_and_nothing_follows_it(dispatcher, work):
    dispatcher.wake(ONE)
    await turns()
    dispatcher.wake(ONE)
    stopping = asyncio.create_task(dispatcher.stop(patience=30))
    await turns()
    assert not stopping.done()
    await work.let_go()
    await asyncio.wait_for(stopping, 10)
    assert work.runs == work.ended == [ONE]


async def test_after_stopping_nothing_is_begun(dispatcher, work):
    dispatcher.wake(ONE)
    await dispatcher.stop()
    dispatcher.wake(OTHER)
    await turns()
    assert set(work.runs) == set(work.ended)
    assert OTHER not in work.runs


@pytest.mark.django_db(transaction=True)
class TestSwitch:
    def test_wakes_only_after_commit(self):
        switch, bell = Switch(), Bell()
        switch.use(bell)
        with transaction.atomic():
            switch.dispatch(ONE)
            assert bell.rung == []
        assert bell.rung == [ONE]

    def test_wakes_nobody_after_a_rollback(self):
        switch, bell = Switch(), Bell()
        switch.use(bell)
        with transaction.atomic():
            switch.dispatch(ONE)
            transaction.set_rollback(True)
        assert bell.rung == []

    def test_wakes_nobody_for_a_savepoint_that_was_rolled_back(self):
        switch, bell = Switch(), Bell()
        switch.use(bell)
        with transaction.atomic():
            with transaction.atomic():
                switch.dispatch(ONE)
                transaction.set_rollback(True)
            switch.dispatch(OTHER)
        assert bell.rung == [OTHER]

    def test_without_a_dispatcher_nothing_happens(self):
        Switch().dispatch(ONE)

    def test_the_dispatcher_in_use_at_commit_is_woken(self):
        switch, first, second = Switch(), Bell(), Bell()
        switch.use(first)
        with transaction.atomic():
            Resource.objects.create(key="one", name="One")
            switch.dispatch(ONE)
            assert switch.use(second) is first
        assert (first.rung, second.rung) == ([], [ONE])
