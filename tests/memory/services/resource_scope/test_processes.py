from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from memory.engine.on_demand import activate_all
from memory.models import Cycle, Observation, Revision
from memory.models.record import CursorMoved
from memory.services import kept, observe
from memory.services.activate import activate
from memory.services.due import run_due
from memory.services.operate import activate_now, buffer_now, observe_now
from tests.memory.services import play
from tests.memory.services.resource_scope.sharing import is_sound, listening, look_at, talk

pytestmark = pytest.mark.django_db(transaction=True)


def separate(*values):
    kept.forget_everything()
    return values


async def test_two_processes_observe_different_threads_at_the_same_time(threads):
    await talk(threads[0], 2)
    first = await sync_to_async(observe.claim)(threads[0].pk)
    separate()
    await talk(threads[1], 2)
    second = await sync_to_async(observe.claim)(threads[1].pk)
    assert second.cycle.thread_id == threads[1].pk
    assert await observe.run(second, resolve=listening())
    separate()
    assert await observe.run(first, resolve=listening())

    assert await Cycle.objects.filter(status="done").acount() == 2
    assert await is_sound() == []


async def test_a_process_whose_lease_lapsed_commits_nothing_for_any_thread(threads, shared):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    late = await sync_to_async(observe.claim)(threads[0].pk)
    assert len(late.shares) == 3
    for share in late.shares:
        await sync_to_async(play.lapse)(share.cycle)
    separate()
    models = listening()
    assert await run_due(threads[1].pk, resolve=models)
    await observe.run(late, resolve=models)

    assert await Observation.objects.acount() == 3
    assert await is_sound() == []


async def test_of_a_batch_only_what_another_process_took_over_is_given_up(threads, shared):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    late = await sync_to_async(observe.claim)(threads[0].pk)
    taken = late.shares[1].cycle
    await sync_to_async(play.lapse)(taken)
    separate()
    await observe_now(taken.thread_id, resolve=listening(), wait_seconds=0)
    await observe.run(late, resolve=listening())

    async for cycle in Cycle.objects.filter(pk__in=[s.cycle.pk for s in late.shares]):
        assert cycle.status == ("failed" if cycle.pk == taken.pk else "done")
    assert await Observation.objects.acount() == 3
    assert await is_sound() == []


async def test_of_two_processes_that_activate_one_is_first_and_the_other_sees_it(threads):
    for each in threads:
        await talk(each, 2)
    await buffer_now(threads[0].pk, resolve=listening())
    stale = await look_at(threads[0].pk)
    separate()
    await activate_now(threads[1].pk)

    def late():
        with pytest.raises(CursorMoved):
            activate(stale, activate_all(stale.snapshot()))

    await sync_to_async(late)()
    assert await Revision.objects.acount() == 1
    assert await is_sound() == []


async def test_what_another_process_showed_of_the_own_thread_meanwhile_is_not_told_raw_too(threads):
    own, other = threads[:2]
    for each in (own, other):
        await talk(each, 2)
    await buffer_now(own.pk, resolve=listening())
    stale, view = await look_at(own.pk), await look_at(own.pk)
    due = activate_all(stale.snapshot())

    def of(thread):
        return replace(due, chunks=tuple(c for c in due.chunks if c.thread == thread.pk))

    await sync_to_async(activate)(view, of(own))
    after = await sync_to_async(activate)(stale, of(other))

    separate()
    fresh = await look_at(own.pk)
    assert after.observed_through == fresh.observed_through > stale.observed_through
    assert [raw.position for raw in after.raw] == [raw.position for raw in fresh.raw]
    assert [line.text for line in after.lines] == [line.text for line in fresh.lines]
