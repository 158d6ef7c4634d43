import asyncio
import threading

from omsite.layer import LoopSafeInMemoryLayer


def in_a_thread(work):
    """Run a coroutine function on a loop of its own in another thread."""
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    return thread


async def test_what_is_sent_from_another_loop_arrives_at_once():
    layer = LoopSafeInMemoryLayer()
    await layer.group_add("room", "page")
    waiting = asyncio.create_task(layer.receive("page"))
    foreign = in_a_thread(lambda: layer.group_send("room", {"n": 1}))

    assert await asyncio.wait_for(waiting, 10) == {"n": 1}
    await asyncio.to_thread(foreign.join)


async def test_many_senders_lose_and_double_nothing():
    layer = LoopSafeInMemoryLayer(capacity=1000)
    await layer.group_add("room", "page")

    async def send_fifty():
        for number in range(50):
            await layer.group_send("room", {"n": number})

    senders = [in_a_thread(send_fifty) for _ in range(4)]
    async with asyncio.timeout(20):
        numbers = [(await layer.receive("page"))["n"] for _ in range(200)]
    for sender in senders:
        await asyncio.to_thread(sender.join)
    assert sorted(numbers) == sorted(list(range(50)) * 4)


async def test_a_single_sender_keeps_its_order():
    layer = LoopSafeInMemoryLayer()
    await layer.group_add("room", "page")

    async def send_ten():
        for number in range(10):
            await layer.group_send("room", {"n": number})

    foreign = in_a_thread(send_ten)
    async with asyncio.timeout(10):
        assert [(await layer.receive("page"))["n"] for _ in range(10)] == list(range(10))
    await asyncio.to_thread(foreign.join)


async def test_a_message_to_one_channel_is_delivered_from_another_loop_too():
    layer = LoopSafeInMemoryLayer()
    waiting = asyncio.create_task(layer.receive("page"))
    await asyncio.sleep(0)
    foreign = in_a_thread(lambda: layer.send("page", {"n": 1}))
    assert await asyncio.wait_for(waiting, 10) == {"n": 1}
    await asyncio.to_thread(foreign.join)


def test_with_nobody_receiving_sending_is_over_at_once():
    layer = LoopSafeInMemoryLayer()
    asyncio.run(asyncio.wait_for(layer.group_send("room", {"n": 1}), 10))


def test_a_loop_that_has_ended_holds_nobody_up():
    layer = LoopSafeInMemoryLayer()
    asyncio.run(layer.group_add("room", "page"))
    asyncio.run(asyncio.wait_for(layer.group_send("room", {"n": 1}), 10))


def test_a_loop_that_is_stopped_but_not_closed_holds_nobody_up():
    layer = LoopSafeInMemoryLayer()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(layer.group_add("room", "page"))
    asyncio.run(asyncio.wait_for(layer.group_send("room", {"n": 1}), 5))
    loop.close()
