import asyncio
from uuid import uuid4

from memory.background import RunDispatcher
from memory.services.cycles import resolve_model


async def settled_by(dispatcher):
    dispatcher.settle(uuid4(), resolve=resolve_model)
    return asyncio.get_running_loop()


def test_loops_that_have_ended_are_let_go_of():
    dispatcher = RunDispatcher()
    first, second = (asyncio.run(settled_by(dispatcher)) for _ in range(2))

    assert dispatcher.of(first) is None
    assert dispatcher.of(second) is not None
