"""What becomes of an answer while the database is away for a moment."""

from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection

from agents.models import Turn
from agents.services.turn import run_turns
from tests.agents.services.acting import Actor, ask, statuses, texts

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def away(times, when):
    """Refuse so many statements that hold a text, in their words or their values."""
    left = [times]

    def refuse(execute, sql, params, many, context):
        if left[0] and when in f"{sql} {params}":
            left[0] -= 1
            raise OperationalError("database is locked")
        return execute(sql, params, many, context)

    await sync_to_async(lambda: connection.execute_wrappers.append(refuse))()
    try:
        yield left
    finally:
        await sync_to_async(lambda: connection.execute_wrappers.remove(refuse))()


async def test_a_whole_answer_is_stored_when_the_database_is_back(thread):
    await ask(thread, "Hello")
    actor = Actor(["All of the answer."])
    async with away(1, '"finished_at"') as left:
        await run_turns(thread.pk, resolve=actor)

    assert left == [0]
    assert await statuses() == ["done"]
    assert await texts() == ["Hello", "All of the answer."]
    assert len(actor.requests) == 1


async def test_a_step_that_could_not_be_stored_ends_the_turn_with_what_to_do(thread):
    await ask(thread, "What time is it?")
    actor = Actor(["Wait. ", ("current_time", "{}")], ["Noon."])
    async with away(1, "Wait. ") as left:
        await run_turns(thread.pk, resolve=actor)

    turn = await Turn.objects.aget()
    assert left == [0]
    assert turn.status == "failed"
    assert "Try again" in turn.error
    assert await texts() == ["What time is it?", "Wait."]
