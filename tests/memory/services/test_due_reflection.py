from string import ascii_lowercase

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from memory.models import Cycle, MemoryRecord, Observation
from memory.services import observe, reflect
from memory.services.due import run_due
from tests.fakes import Models, observe_each
from tests.memory.services import play
from tests.memory.services.replying import PROSE, REPEATED, is_sentence, request, saying, talk

pytestmark = pytest.mark.django_db(transaction=True)


async def grown(thread, tokens):
    """Talk until the visible lines have so many tokens."""
    while True:
        await talk(thread, 2)
        while await sync_to_async(play.buffer)(thread):
            pass
        await request(thread)
        view = await sync_to_async(observe.look)(thread.pk)
        if view.tokens >= tokens:
            return view


async def test_the_ladder_rises_until_the_target_holds(thread):
    await grown(thread, 240)
    claimed = await sync_to_async(reflect.claim)(thread.pk)
    sizes = iter([claimed.tokens - 5, claimed.target + 10, 20])
    models = Models(reflector=lambda _: listed(next(sizes)))
    assert await reflect.run(claimed, resolve=models)

    assert len(models.asked("reflector")) == 3
    cycle = await Cycle.objects.aget(lane="reflector")
    assert (cycle.status, cycle.level) == ("done", 3)


def listed(tokens):
    """Write a reflection of about so many tokens."""
    bullet = 5
    words = [ascii_lowercase[n % 26] for n in range(tokens - bullet)]
    return "<observations>\nDate: March 2, 2026\n* 🔴 " + " ".join(words) + "\n</observations>"


async def test_when_no_level_holds_the_target_the_smallest_is_taken(thread):
    await grown(thread, 240)
    claimed = await sync_to_async(reflect.claim)(thread.pk)
    sizes = iter([claimed.target + n for n in (30, 10, 20, 15)])
    models = Models(reflector=lambda _: listed(next(sizes)))
    assert await reflect.run(claimed, resolve=models)

    assert (await Cycle.objects.aget(lane="reflector")).level == 2
    reflection = await Observation.objects.aget(kind="reflection")
    assert claimed.target <= reflection.tokens < claimed.target + 15


async def test_a_reflection_that_is_not_smaller_fails_and_is_not_tried_at_the_same_size(thread):
    view = await grown(thread, 240)
    models = Models(reflector=lambda _: listed(view.tokens + 50))
    assert await run_due(thread.pk, resolve=models) == 1

    cycle = await Cycle.objects.aget(lane="reflector")
    assert (cycle.status, cycle.next_attempt_at) == ("failed", None)
    assert is_sentence(cycle.error)
    assert len(models.asked("reflector")) == 4
    assert not await Observation.objects.filter(kind="reflection").aexists()
    assert await run_due(thread.pk, resolve=models) == 0


async def test_a_reflection_is_tried_again_once_the_size_has_changed(thread):
    view = await grown(thread, 240)
    await run_due(thread.pk, resolve=Models(reflector=lambda _: listed(view.tokens + 50)))
    models = Models()
    await grown(thread, view.tokens + 1)
    await run_due(thread.pk, resolve=models)

    assert models.asked("reflector")
    assert (await MemoryRecord.objects.aget()).generation == 1
    assert await Cycle.objects.filter(lane="reflector", status="done").acount() == 1


@pytest.mark.parametrize("text", ["", PROSE, "<observations>(none)</observations>", REPEATED])
async def test_a_reflector_that_says_nothing_of_use_wipes_nothing(thread, text):
    view = await grown(thread, 240)
    await run_due(thread.pk, resolve=saying(text))

    cycle = await Cycle.objects.aget(lane="reflector")
    assert cycle.status == "failed"
    assert is_sentence(cycle.error)
    after = await sync_to_async(observe.look)(thread.pk)
    assert [line.pk for line in after.lines] == [line.pk for line in view.lines]


async def test_one_bad_level_does_not_spoil_the_next(thread):
    await grown(thread, 240)
    replies = iter(["", PROSE, listed(20)])
    models = Models(reflector=lambda _: next(replies))
    await run_due(thread.pk, resolve=models)
    assert (await Cycle.objects.aget(lane="reflector")).level == 3


async def test_an_answer_of_two_texts_is_read_whole(thread):
    await talk(thread, 2)

    def answer(messages, info):
        first, second = observe_each("[#1]\n[#2]").split("\n* 🟡", 1)
        return ModelResponse(parts=[TextPart(first + "\n"), TextPart("* 🟡" + second)])

    await run_due(thread.pk, resolve=lambda _: FunctionModel(answer, model_name="fake"))
    assert [c.error async for c in Cycle.objects.all()] == [""]
