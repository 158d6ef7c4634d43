"""One memory for all conversations of a resource."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db.models import Sum
from pydantic_ai.models.function import FunctionModel

from agents.services.thread import start
from memory.models import Cursor, Cycle, MemoryRecord, Observation
from memory.services import observe
from memory.services.due import run_due
from memory.services.operate import buffer_now, observe_now
from tests.fakes import Models, user_texts
from tests.memory.services import play
from tests.memory.services.resource_scope.sharing import (
    is_sound,
    label,
    listening,
    look_at,
    observe_threads,
    raw_tokens,
    sections,
    talk,
)

pytestmark = pytest.mark.django_db(transaction=True)


def asked_about(models):
    """Return the labels of each call to an Observer."""
    calls = ["\n".join(user_texts(messages)) for messages in models.asked("observer")]
    return [sorted(sections(call)) for call in calls]


# one record, a cursor per thread


async def test_all_threads_have_one_record_and_each_a_cursor(threads):
    for each in threads:
        await talk(each, 3)
    await observe_now(threads[0].pk, resolve=listening())

    record = await MemoryRecord.objects.aget()
    assert (record.scope, record.thread_id) == ("resource", None)
    cursors = {c.thread_id: c.observed_through async for c in Cursor.objects.all()}
    assert cursors == {each.pk: 6 for each in threads}
    for each in threads:
        assert (await look_at(each.pk)).record.pk == record.pk
    assert await is_sound() == []


async def test_what_is_pending_is_every_raw_message_once_from_wherever_it_is_asked(threads):
    for number, each in enumerate(threads):
        await talk(each, number + 1)
    await run_due(threads[0].pk, resolve=listening())
    expected = await sync_to_async(raw_tokens)()
    for each in threads:
        assert (await look_at(each.pk)).snapshot().pending_tokens == expected

    await observe_now(threads[1].pk, resolve=listening())
    await talk(threads[2], 1)
    expected = await sync_to_async(raw_tokens)()
    for each in threads:
        assert (await look_at(each.pk)).snapshot().pending_tokens == expected


async def test_a_thread_with_a_memory_of_its_own_is_no_part_of_it(threads):
    own = await MemoryRecord.objects.acreate(
        resource_id=threads[0].resource_id, thread=threads[0], scope="thread"
    )
    for each in threads:
        await talk(each, 2)

    assert (await look_at(threads[0].pk)).record.pk == own.pk
    others = {tail.thread for tail in (await look_at(threads[1].pk)).tails}
    assert others == {threads[1].pk, threads[2].pk}


# who is observed, and in which calls


async def test_the_longest_threads_are_observed_first_until_it_is_an_interval(threads):
    await talk(threads[0], 1)
    await talk(threads[1], 3)
    await talk(threads[2], 2)
    models = listening()
    claimed = await sync_to_async(observe.claim)(threads[0].pk)

    assert [share.cycle.thread_id for share in claimed.shares] == [threads[1].pk]
    assert await observe.run(claimed, resolve=models)
    assert await is_sound() == []


async def test_short_threads_share_a_call(threads, shared):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    models = listening()
    assert await run_due(threads[0].pk, resolve=models) == 1

    assert asked_about(models) == [sorted(map(label, threads))]
    cycles = [c async for c in Cycle.objects.all()]
    assert len(cycles) == 3
    assert len({c.call for c in cycles}) == 1
    assert {c.thread_id for c in cycles} == {each.pk for each in threads}
    async for row in Observation.objects.prefetch_related("lines"):
        said = {line.text.split()[2] for line in row.lines.all()}
        assert said == {row.thread_id.hex[-8:]}
        assert {line.last_position for line in row.lines.all()} == {1, 2}
    assert await is_sound() == []


async def test_a_call_holds_as_much_as_a_batch_may(shared, resource, profile):
    await sync_to_async(shared)(max_tokens_per_batch=300)
    many = [await sync_to_async(start)(resource, profile) for _ in range(6)]
    for each in many:
        await talk(each, 1)
    models = listening()
    await buffer_now(many[0].pk, resolve=models)

    assert sorted(map(len, asked_about(models))) == [2, 2, 2]
    async for cycle in Cycle.objects.all():
        together = Cycle.objects.filter(call=cycle.call)
        assert (await together.aaggregate(total=Sum("message_tokens")))["total"] <= 300
    assert await is_sound() == []


async def test_only_so_many_calls_run_at_once(shared, resource, profile):
    await sync_to_async(shared)(max_tokens_per_batch=100, parallel_calls=2)
    many = [await sync_to_async(start)(resource, profile) for _ in range(5)]
    for each in many:
        await talk(each, 1)
    running, most = 0, 0

    class Counting(Models):
        def __call__(self, name):
            async def counted(messages, info):
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.02)
                running -= 1
                return self._answer(messages, info)

            return FunctionModel(counted, model_name="fake")

    models = Counting(observer=observe_threads)
    await buffer_now(many[0].pk, resolve=models)

    assert len(models.asked("observer")) == 5
    assert most == 2


async def test_a_call_that_fails_costs_only_its_threads(shared, resource, profile):
    await sync_to_async(shared)(max_tokens_per_batch=300)
    many = [await sync_to_async(start)(resource, profile) for _ in range(4)]
    for each in many:
        await talk(each, 1)
    bad = label(many[0])

    def fail_for_one(prompt):
        if bad in sections(prompt):
            raise ConnectionError("It broke off.")
        return observe_threads(prompt)

    found = await buffer_now(many[0].pk, resolve=Models(observer=fail_for_one))

    assert (found.done, found.failed) == (2, 2)
    failed = {c.thread_id async for c in Cycle.objects.filter(status="failed")}
    assert many[0].pk in failed
    assert await Observation.objects.acount() == 2
    assert await is_sound() == []
    # Nothing is lost: what failed is observed the next time.
    again = await observe_now(many[0].pk, resolve=listening())
    assert (again.failed, again.after.raw) == (0, 0)
    assert await is_sound() == []


async def test_a_thread_the_reply_says_nothing_of_costs_the_others_nothing(threads, shared):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    silent = label(threads[1])
    models = Models(observer=lambda prompt: observe_threads(prompt, silent=[silent]))
    await run_due(threads[0].pk, resolve=models)

    failed = await Cycle.objects.aget(status="failed")
    assert failed.thread_id == threads[1].pk
    assert failed.next_attempt_at is not None
    assert not await Observation.objects.filter(thread=threads[1]).aexists()
    assert await Observation.objects.acount() == 2
    assert await is_sound() == []


async def test_a_range_that_failed_is_asked_for_alone_the_next_time(threads, shared):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    silent = label(threads[1])
    models = Models(observer=lambda prompt: observe_threads(prompt, silent=[silent]))
    await run_due(threads[0].pk, resolve=models)
    failed = await Cycle.objects.aget(status="failed")
    await sync_to_async(play.rested)(failed)
    for each in threads:
        await talk(each, 1)
    models = listening()
    await run_due(threads[0].pk, resolve=models)

    assert [] in asked_about(models)
    assert await Observation.objects.filter(thread=threads[1]).aexists()
    assert await is_sound() == []


@pytest.mark.parametrize("silent", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
async def test_what_a_call_cost_is_told_once_whichever_threads_it_says_nothing_of(
    threads, shared, silent
):
    await sync_to_async(shared)(message_tokens=2000, buffer_tokens=300)
    for each in threads:
        await talk(each, 1)
    labels = [label(threads[number]) for number in silent]
    models = Models(observer=lambda prompt: observe_threads(prompt, silent=labels))
    await run_due(threads[0].pk, resolve=models)

    assert len(models.asked("observer")) == 1
    cycles = [cycle async for cycle in Cycle.objects.all()]
    assert sum(cycle.status == "failed" for cycle in cycles) == len(silent)
    assert sorted(bool(cycle.output_tokens) for cycle in cycles) == [False, False, True]


# values extracted


async def test_what_was_extracted_of_a_thread_stays_when_another_thread_has_it_observed(
    threads, shared
):
    where = {"name": "City", "instructions": "Where does the user live?"}
    await sync_to_async(shared)(extract=[where])
    first, second, _ = threads
    await talk(second, 1)
    told = Models(observer=lambda prompt: f"{observe_threads(prompt)}\n<city>Bonn</city>")
    await observe_now(second.pk, resolve=told)
    await talk(second, 1)
    await observe_now(first.pk, resolve=listening())

    latest = Observation.objects.filter(thread=second).order_by("-last_position")
    assert [o.extracted async for o in latest] == [{"city": "Bonn"}] * 2
