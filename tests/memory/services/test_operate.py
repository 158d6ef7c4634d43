import asyncio

import pytest
from asgiref.sync import sync_to_async

from memory.llm import ModelUnavailable
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Revision
from memory.services import observe, reflect
from memory.services.change import Refused
from memory.services.compact import compact, finalize
from memory.services.due import run_due
from memory.services.erase import erase_thread
from memory.services.forget import show_again
from memory.services.fork import fork
from memory.services.look import look
from memory.services.operate import activate_now, buffer_now, observe_now, reflect_now
from memory.verify.run import verify
from tests.fakes import Models, user_texts
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

talk = sync_to_async(play.talk)
say = sync_to_async(play.say)
buffer_all = sync_to_async(play.buffer_all)
look_at = sync_to_async(look)


async def sound():
    return (await sync_to_async(verify)()).violations == ()


async def revision():
    return await Revision.objects.alatest("number")


def failing(_):
    raise ModelUnavailable("Model “fake” is not set up.")


async def test_a_conversation_that_was_erased_is_refused_and_nothing_of_it_is_due(thread, models):
    await sync_to_async(erase_thread)(thread.pk)

    assert await run_due(thread.pk, resolve=models) == 0
    for work in (observe_now, buffer_now, reflect_now, finalize):
        with pytest.raises(Refused, match="no such conversation"):
            await work(thread.pk, resolve=models)


async def test_all_that_can_be_covered_is_observed_and_shown(thread, models):
    await talk(thread, 1)
    found = await observe_now(thread.pk, resolve=models)

    assert (found.done, found.failed, found.why) == (1, 0, "")
    assert (found.before.raw > 0, found.after.raw) == (True, 0)
    assert found.after.lines > 0
    cycle = await Cycle.objects.aget()
    assert (cycle.kind, cycle.trigger, cycle.status) == ("observe", "manual", "done")
    assert (await revision()).trigger == "manual"
    assert await sound()


async def test_observing_now_goes_call_by_call_and_keeps_an_unanswered_prompt(thread, models):
    await talk(thread, 9)
    await say(thread, play.question("And the queen?"))
    found = await observe_now(thread.pk, resolve=models)

    assert found.done == len(models.asked("observer")) > 1
    view = await look_at(thread.pk)
    assert [raw.position for raw in view.raw] == [19]
    assert await sound()


async def test_what_is_buffered_is_shown_and_not_observed_again(thread, models):
    await talk(thread, 3)
    await buffer_all(thread)
    found = await observe_now(thread.pk, resolve=models)

    assert (found.activated, found.done, found.after.raw) == (1, 0, 0)
    assert not models.asked("observer")
    assert await sound()


async def test_with_nothing_to_observe_it_says_so_and_asks_nobody(thread, models):
    await say(thread, play.question())
    found = await observe_now(thread.pk, resolve=models)

    assert not found.changed
    assert found.why == "There is nothing to observe: no completed step is raw."
    assert not await Cycle.objects.aexists()


async def test_buffering_now_shows_nothing_yet(thread, models):
    await talk(thread, 1)
    found = await buffer_now(thread.pk, resolve=models)

    assert found.done == 1
    assert found.after.buffered == found.after.raw == found.before.raw
    assert (found.after.lines, found.after.revision) == (0, 0)
    assert (await Cycle.objects.aget()).trigger == "manual"


async def test_activating_now_shows_all_chunks_whatever_the_floor(thread, models):
    await talk(thread, 4)
    await buffer_all(thread)
    found = await activate_now(thread.pk)

    assert found.activated >= 1
    assert found.after.raw == 0
    assert (await revision()).trigger == "manual"
    again = await activate_now(thread.pk)
    assert (again.changed, again.why) == (False, "Nothing is buffered.")
    assert await sound()


async def test_a_failure_says_why_and_leaves_all_as_it_was(thread):
    await talk(thread, 2)
    found = await observe_now(thread.pk, resolve=failing)

    assert (found.done, found.failed, found.changed) == (0, 1, False)
    assert "not set up" in found.why
    assert found.after == found.before
    assert await sound()


async def test_asking_again_does_not_wait_until_a_failure_has_rested(thread, models):
    await talk(thread, 2)
    await observe_now(thread.pk, resolve=failing)
    found = await observe_now(thread.pk, resolve=models)

    assert (found.done, found.after.raw) == (1, 0)


async def test_an_observation_under_way_is_waited_for_and_not_repeated(thread, models):
    await talk(thread, 2)
    claimed = await sync_to_async(observe.claim)(thread.pk)
    work = asyncio.create_task(observe_now(thread.pk, resolve=models))
    await asyncio.sleep(0.05)
    assert not work.done()
    assert await observe.run(claimed, resolve=models)
    found = await work

    assert len(models.asked("observer")) == 1
    assert found.failed == 0
    assert found.after.raw == 0
    assert await sound()


async def test_the_wait_for_somebody_elses_cycle_has_a_bound(thread, models):
    await talk(thread, 2)
    await sync_to_async(observe.claim)(thread.pk)
    found = await observe_now(thread.pk, resolve=models, wait_seconds=0.2)

    assert found.why == "Another observation is still under way: try again later."
    assert not models.asked("observer")


@pytest.mark.parametrize(
    "operation", [observe_now, buffer_now, activate_now, reflect_now, finalize]
)
async def test_a_conversation_without_memory_is_refused(thread, operation):
    thread.remembers = False
    await thread.asave()
    with pytest.raises(Refused, match="does not remember"):
        await operation(thread.pk)


# reflect


async def grown(thread, models, turns=4):
    await talk(thread, turns)
    await observe_now(thread.pk, resolve=models)
    return await look_at(thread.pk)


async def test_reflecting_now_minds_its_focus_whatever_the_size(thread, models):
    await grown(thread, models)
    found = await reflect_now(thread.pk, focus="Keep names of bees.", resolve=models)

    assert (found.done, found.why) == (1, "")
    assert found.after.lines < found.before.lines
    assert (await MemoryRecord.objects.aget()).generation == 1
    asked = "\n".join(user_texts(models.asked("reflector")[0]))
    assert "Keep names of bees." in asked
    cycle = await Cycle.objects.aget(lane="reflector")
    assert (cycle.trigger, cycle.level) == ("manual", 0)
    assert (await revision()).trigger == "manual"
    assert await sound()


async def test_without_lines_there_is_nothing_to_condense(thread, models):
    found = await reflect_now(thread.pk, resolve=models)

    assert not found.changed
    assert found.why.startswith("There is nothing to condense")


async def test_a_reflection_that_fails_says_why_and_loses_nothing(thread, models):
    view = await grown(thread, models)
    found = await reflect_now(thread.pk, resolve=Models(reflector=lambda _: "Nothing of use."))

    assert (found.failed, found.changed) == (1, False)
    assert found.why.endswith(".")
    after = await look_at(thread.pk)
    assert [line.pk for line in after.lines] == [line.pk for line in view.lines]
    assert await sound()


async def test_asking_for_a_reflection_is_not_held_back_by_one_that_brought_nothing(thread, models):
    await grown(thread, models)
    long = Models(reflector=lambda text: "<observations>\n* 🔴 " + "bees and " * 900)
    await reflect_now(thread.pk, resolve=long)
    found = await reflect_now(thread.pk, resolve=models)

    assert (found.done, found.failed) == (1, 0)


async def test_a_reflection_that_waits_gives_way_to_the_one_that_is_asked_for(thread, models):
    await grown(thread, models, 4)
    waiting = await sync_to_async(play.condense)(thread)
    assert waiting is not None
    assert waiting.since is None
    found = await reflect_now(thread.pk, resolve=models)

    assert found.done == 1
    await waiting.arefresh_from_db()
    assert waiting.discarded_at is not None
    assert waiting.since is None
    assert await sound()


async def test_a_reflection_under_way_is_waited_for_within_a_bound(thread, models):
    await grown(thread, models, 8)
    claimed = await sync_to_async(reflect.claim)(thread.pk)
    assert claimed is not None
    found = await reflect_now(thread.pk, resolve=models, wait_seconds=0.2)

    assert found.why == "Another reflection is still under way: try again later."


# compact and finalize


async def test_compacting_goes_oldest_first_until_the_target_and_tells_how_far_it_is(
    thread, models
):
    await talk(thread, 12)
    told = []
    found = await compact(thread.pk, 400, resolve=models, progress=told.append)

    assert found.after.raw <= 400 < found.before.raw
    assert found.after.raw > 0
    assert [g.raw for g in told] == sorted((g.raw for g in told), reverse=True)
    assert len(told) > 1
    limit = (await look_at(thread.pk)).options.message_tokens
    async for cycle in Cycle.objects.filter(kind="observe"):
        assert cycle.message_tokens <= limit
    assert await sound()


async def test_the_newest_step_stays_raw_even_at_a_target_of_nothing(thread, models):
    await talk(thread, 4)
    await compact(thread.pk, 0, resolve=models)
    assert [raw.position for raw in (await look_at(thread.pk)).raw] == [7, 8]

    await say(thread, play.question("And now?"))
    found = await compact(thread.pk, 0, resolve=models)
    assert found.done == 1
    assert [raw.position for raw in (await look_at(thread.pk)).raw] == [9]
    assert await sound()


async def test_what_is_small_enough_already_is_left_alone(thread, models):
    await talk(thread, 2)
    found = await compact(thread.pk, 5_000, resolve=models)

    assert not found.changed
    assert "which is not more than 5,000." in found.why
    assert not await Cycle.objects.aexists()


async def test_compacting_shows_no_more_chunks_than_it_needs(thread, models):
    for _ in range(4):
        await talk(thread, 2)
        await buffer_all(thread)
    before = await look_at(thread.pk)
    raw = before.snapshot().pending_tokens
    found = await compact(thread.pk, raw - 10, resolve=models)

    assert (found.activated, found.done) == (1, 0)
    assert await sound()


async def test_compacting_condenses_lines_that_are_too_many_then(thread, models):
    await talk(thread, 12)
    found = await compact(thread.pk, 0, resolve=models)

    assert await Cycle.objects.filter(kind="reflect", status="done").acount() == 1
    assert found.after.lines < 200
    assert await sound()


async def test_compacting_ends_when_it_fails(thread):
    await talk(thread, 12)
    found = await compact(thread.pk, 0, resolve=failing)

    assert found.failed == 1
    assert "not set up" in found.why
    assert found.after.raw == found.before.raw


async def test_a_target_below_nothing_is_refused(thread):
    with pytest.raises(Refused, match="target_tokens = -1: must be 0 or more"):
        await compact(thread.pk, -1)


async def test_finalizing_shows_what_is_buffered_and_leaves_what_is_not_due(thread, models):
    await talk(thread, 2)
    await buffer_all(thread)
    await talk(thread, 1)
    found = await finalize(thread.pk, resolve=models)

    assert (found.activated, found.done) == (1, 0)
    assert found.after.raw > 0
    again = await finalize(thread.pk, resolve=models)
    assert again.why == "Nothing is buffered and nothing is due."


async def test_finalizing_observes_and_condenses_what_is_over(thread, models):
    await talk(thread, 12)
    found = await finalize(thread.pk, resolve=models)

    assert found.after.raw == 0
    assert (await MemoryRecord.objects.aget()).generation == 1
    assert found.after.lines < 200
    assert await sound()


async def test_finalizing_waits_for_what_is_under_way(thread, models):
    await talk(thread, 2)
    claimed = await sync_to_async(observe.claim)(thread.pk)
    work = asyncio.create_task(finalize(thread.pk, resolve=models))
    await asyncio.sleep(0.05)
    assert not work.done()
    await observe.run(claimed, resolve=models)

    assert (await work).activated == 1
    assert await Line.objects.filter(since__isnull=False).aexists()
    assert await Observation.objects.filter(since__isnull=True).acount() == 0


async def test_a_fork_with_a_line_shown_beside_its_reflection_is_condensed_as_well(thread, models):
    await grown(thread, models)
    await reflect_now(thread.pk, resolve=models)
    dropped = await Line.objects.filter(until__isnull=False).afirst()
    await sync_to_async(show_again)(dropped.pk)
    last = await Message.objects.acount()
    child = await sync_to_async(fork)(thread.pk, last)

    found = await reflect_now(child.pk, resolve=models)

    assert (found.done, found.failed) == (1, 0)
    assert await sound()
