import pytest
from asgiref.sync import sync_to_async

from agents.models import Turn
from agents.services.send import send
from agents.services.turn import run_turns
from memory.models import Cycle, Line, Message, Revision
from memory.services.due import run_due

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 3


async def talk(thread, models, *prompts):
    """Send prompts one by one, each answered and observed before the next."""
    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)


async def test_a_prompt_is_answered_and_both_are_stored(thread, models):
    await talk(thread, models, "Hello")

    turn = await Turn.objects.aget()
    assert turn.status == Turn.Status.DONE
    assert [m.text async for m in Message.objects.order_by("position")] == ["Hello", "Understood."]


async def test_a_conversation_becomes_memory(thread, models):
    await talk(thread, models, *[f"{n}: {LONG}" for n in range(16)])

    causes = [r.cause async for r in Revision.objects.order_by("number")]
    assert "activate" in causes
    assert "reflect" in causes
    assert await Cycle.objects.filter(status="failed").acount() == 0
    assert await Line.objects.filter(since__isnull=False).acount() > 0
