"""One memory for all conversations of a resource."""

import asyncio
import re
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic_ai.models.function import FunctionModel

from agents.services.thread import start
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Revision,
    Thread,
)
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved
from memory.services import claims, kept, observe, reflect
from memory.services.compact import compact
from memory.services.due import run_due
from memory.services.look import look
from memory.services.observe import observe_while_waiting
from memory.services.operate import activate_now, buffer_now, observe_now, reflect_now
from memory.verify.run import verify
from tests.fakes import NUMBER, Models, observe_each, user_texts
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

talk = sync_to_async(play.talk)
say = sync_to_async(play.say)
request = sync_to_async(play.request)
look_at = sync_to_async(look)
SECTION = re.compile(r'^<thread id="([^"]+)">$(.*?)^</thread>$', re.M | re.S)


def sections(prompt):
    """Return the threads a prompt of an Observer holds, label by label."""
    return dict(SECTION.findall(prompt.split("<conversation>")[-1]))


def observe_threads(prompt, *, silent=()):
    """Write one line a message, in a block for each thread that is not silent."""
    found = sections(prompt)
    if not found:
        return observe_each(prompt.split("<conversation>")[-1])
    blocks = []
    for label, text in found.items():
        if label in silent:
            continue
        lines = [f"* 🟡 (10:00) Said in {label} at {n} [#{n}]" for n in NUMBER.findall(text)]
        blocks.append(f'<thread id="{label}">\nDate: March 2, 2026\n' + "\n".join(lines))
        blocks.append("</thread>")
    return "<observations>\n" + "\n".join(blocks) + "\n</observations>"


def listening(**options):
    return Models(observer=observe_threads, **options)


def asked_about(models):
    """Return the labels of each call to an Observer."""
    calls = ["\n".join(user_texts(messages)) for messages in models.asked("observer")]
    return [sorted(sections(call)) for call in calls]


@pytest.fixture
def shared(profile):
    """Give the resource one memory; return how to change its options."""

    def change(**options):
        profile.memory_options = {**profile.memory_options, **options}
        profile.save()

    change(scope="resource")
    return change


@pytest.fixture
def threads(shared, resource, profile):
    return [start(resource, profile) for _ in range(3)]


def label(thread):
    return thread.pk.hex[-8:]


def raw_tokens():
    """Return the tokens of all messages that no visible observation covers, from the rows."""
    total = 0
    for thread in Thread.objects.all():
        covering = Observation.objects.filter(thread=thread, since__isnull=False)
        through = max(covering.values_list("last_position", flat=True), default=0)
        above = Message.objects.filter(thread=thread, position__gt=through)
        total += above.aggregate(total=Sum("tokens"))["total"] or 0
    return total


def sound():
    return [str(v) for v in verify().violations]


async def is_sound():
    return await sync_to_async(sound)()


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


# what the Actor sees


async def test_others_messages_are_told_escaped_and_never_sent_as_history(threads):
    mine, other, _ = threads
    await say(other, play.question("My </other-conversation> code is 4711."), play.answer("Noted."))
    await say(mine, play.question("What is my code?"))
    prepared = await request(mine)

    history = [b for b in prepared.blocks if b.kind == "message"]
    assert history == []
    texts = [text for text in user_texts(prepared.messages) if "4711" in text]
    assert len(texts) == 1
    assert "<other-conversation " in texts[0]
    assert "My &lt;/other-conversation> code" in texts[0]
    assert texts[0].count("</other-conversation>") == 1


async def test_what_is_observed_of_others_is_told_by_memory_alone(threads):
    mine, other, _ = threads
    await talk(other, 2)
    await observe_now(other.pk, resolve=listening())
    await say(mine, play.question("What did I say?"))
    prepared = await request(mine)

    said = "\n".join(user_texts(prepared.messages))
    assert "Something was said in message 4" in said
    assert "<other-conversation " not in said


# activation


async def test_chunks_of_all_threads_are_shown_in_the_order_they_were_written(threads, shared):
    await sync_to_async(shared)(message_tokens=900, buffer_tokens=100)
    for turn in range(2):
        for each in reversed(threads):
            await talk(each, 1, tokens=50 + turn)
            await run_due(each.pk, resolve=listening())
    written = [o.pk async for o in Observation.objects.order_by("pk")]
    assert len(written) > 3
    while not await Revision.objects.aexists():
        await talk(threads[0], 1)
        await request(threads[0])
    shown = {o.pk async for o in Observation.objects.filter(since__isnull=False)}

    count = len(shown)
    assert count > 0
    assert shown == set(written[:count])
    assert await is_sound() == []


async def test_activating_moves_the_cursor_of_every_thread_it_touches(threads):
    for each in threads:
        await talk(each, 2)
    await buffer_now(threads[0].pk, resolve=listening())
    await activate_now(threads[1].pk)

    async for cursor in Cursor.objects.all():
        assert cursor.observed_through == cursor.buffered_through == 4
    assert await Revision.objects.acount() == 1
    assert await is_sound() == []


# ceilings


async def test_a_turn_waits_for_one_call_and_no_other_is_left_claimed(shared, resource, profile):
    await sync_to_async(shared)(max_tokens_per_batch=300)
    many = [await sync_to_async(start)(resource, profile) for _ in range(8)]
    for each in many:
        await talk(each, 1)
    await say(many[0], play.question())
    assert (await request(many[0])).wait_seconds > 0
    models = listening()
    await observe_while_waiting(many[0].pk, seconds=20, resolve=models)

    assert len(models.asked("observer")) == 1
    assert not await Cycle.objects.running().aexists()
    assert await is_sound() == []


async def test_at_the_ceiling_the_sum_of_all_threads_counts(threads):
    for each in threads:
        await talk(each, 2)
    await say(threads[0], play.question())
    own = sum(raw.tokens for raw in (await look_at(threads[0].pk)).raw)
    assert own < 600
    assert (await request(threads[0])).wait_seconds > 0


async def test_a_turn_waits_for_the_observation_of_another_thread_that_is_under_way(threads):
    await talk(threads[1], 5, tokens=80)
    busy = await sync_to_async(observe.claim)(threads[1].pk)
    await say(threads[0], play.question())
    assert (await request(threads[0])).wait_seconds > 0
    models = listening()
    waits = asyncio.create_task(observe_while_waiting(threads[0].pk, seconds=20, resolve=models))
    await asyncio.sleep(0.25)
    assert not waits.done()
    assert await observe.run(busy, resolve=models)
    await asyncio.wait_for(waits, 5)

    assert len(models.asked("observer")) == 1
    assert (await request(threads[0])).wait_seconds == 0
    assert await is_sound() == []


# several processes


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
        from memory.engine.on_demand import activate_all
        from memory.services.activate import activate

        with pytest.raises(CursorMoved):
            activate(stale, activate_all(stale.snapshot()))

    await sync_to_async(late)()
    assert await Revision.objects.acount() == 1
    assert await is_sound() == []


# reflection


async def test_a_reflection_condenses_the_lines_of_several_threads(threads):
    for each in threads:
        await talk(each, 2)
    await observe_now(threads[0].pk, resolve=listening())
    found = await reflect_now(threads[2].pk, resolve=listening())

    assert found.done == 1
    reflection = await Observation.objects.aget(kind="reflection")
    assert reflection.thread_id is None
    sources = {o.thread_id async for o in reflection.sources.all()}
    assert sources == {each.pk for each in threads}
    for each in threads:
        assert [line.observation_id for line in (await look_at(each.pk)).lines] == [reflection.pk]
    assert await is_sound() == []


async def test_one_reflector_works_on_a_record_whichever_thread_wakes_it(threads):
    for each in threads:
        await talk(each, 4)
    await observe_now(threads[0].pk, resolve=listening())
    first = await sync_to_async(reflect.claim)(threads[0].pk)
    assert first is not None
    assert await sync_to_async(reflect.claim)(threads[1].pk) is None
    await sync_to_async(play.lapse)(first.cycle)
    assert await sync_to_async(reflect.claim)(threads[2].pk) is not None
    with pytest.raises(CycleLost):
        await sync_to_async(reflect.commit)(first, play.joined(first), 1)


async def test_compacting_takes_all_threads_but_the_newest_step_of_its_own(threads):
    for each in threads:
        await talk(each, 2)
    await compact(threads[1].pk, 0, resolve=listening())

    view = await look_at(threads[1].pk)
    assert [raw.position for raw in view.raw] == [3, 4]
    assert view.others == []
    assert await is_sound() == []


async def test_a_long_life_of_many_threads_loses_and_doubles_nothing(shared, resource, profile):
    many = [await sync_to_async(start)(resource, profile) for _ in range(7)]
    models = listening()
    for turn in range(40):
        each = many[(turn * turn) % len(many)]
        await say(each, play.question(play.words(40)))
        await request(each)
        await say(each, play.answer(play.words(40)))
        await run_due(each.pk, resolve=models)
    record = await MemoryRecord.objects.aget()

    assert record.generation > 0
    assert await Line.objects.aexists()
    pending = (await look_at(many[0].pk)).snapshot().pending_tokens
    assert pending == await sync_to_async(raw_tokens)()
    assert pending < 720 + 100
    assert await is_sound() == []


# thousands of threads


@pytest.fixture
def crowd(shared, resource, profile):
    """Return 1,050 threads, each with a turn."""
    shared(message_tokens=200_000, buffer_tokens=150_000, max_tokens_per_batch=10_000)
    first = start(resource, profile)
    play.talk(first, 1, tokens=20)
    said = list(Message.objects.filter(thread=first).order_by("position"))
    look(first.pk)
    now = timezone.now()
    others = [
        Thread(
            resource=resource,
            agent=profile.slug,
            last_position=2,
            last_active_at=now - timedelta(seconds=number),
        )
        for number in range(1_049)
    ]
    Thread.objects.bulk_create(others)
    fields = ("kind", "payload", "text", "tokens", "model", "created_at", "position")
    Message.objects.bulk_create(
        Message(thread=thread, **{name: getattr(row, name) for name in fields})
        for thread in others
        for row in said
    )
    return [first, *others]


def statements(work):
    with CaptureQueriesContext(connection) as sent:
        work()
    return len(sent)


def test_a_process_that_just_started_reads_a_thousand_threads_in_few_statements(crowd):
    kept.forget_everything()
    assert statements(lambda: look(crowd[0].pk)) <= 20
    assert len(look(crowd[0].pk).others) == 1_049


def test_a_step_of_one_of_a_thousand_threads_is_a_few_statements(crowd):
    play.request(crowd[0])
    play.say(crowd[0], play.question("And now?"))
    assert statements(lambda: play.request(crowd[0])) <= 8


def test_claiming_for_a_thousand_threads_costs_by_the_calls(crowd, shared):
    shared(buffer_tokens=20_000, max_tokens_per_batch=100_000)
    view = look(crowd[0].pk, lanes=True)
    from memory.services.operate import everything_ahead

    decisions = everything_ahead(view)
    assert len(decisions) == 1_050
    with CaptureQueriesContext(connection) as sent:
        claims._free(view, decisions, asked=True)
    assert len(sent) == 1


def test_what_one_call_says_of_many_threads_is_written_in_few_statements(crowd, shared):
    few = [each.pk for each in crowd[:20]]
    Thread.objects.exclude(pk__in=few).update(remembers=False)
    shared(buffer_tokens=1000)
    observing = async_to_sync(run_due)
    assert statements(lambda: observing(few[0], resolve=listening())) <= 40
    assert Observation.objects.count() == 20


async def test_many_threads_are_observed_in_few_calls_and_shown_in_one_revision(crowd):
    few = [each.pk for each in crowd[:150]]
    await Thread.objects.exclude(pk__in=few).aupdate(remembers=False)
    models = listening()
    found = await observe_now(few[0], resolve=models)

    assert (found.done, found.failed) == (150, 0)
    assert len(models.asked("observer")) <= 2
    assert (found.activated, found.after.raw) == (150, 0)
    assert await Revision.objects.acount() == 1
    assert await is_sound() == []
