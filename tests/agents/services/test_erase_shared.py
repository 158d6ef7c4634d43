import pytest
from asgiref.sync import sync_to_async

from agents.services.erase import erase_line, erase_messages
from agents.services.send import send
from agents.services.thread import start
from agents.services.turn import run_turns
from memory.models import Blob, MemoryRecord
from memory.services.look import record_of
from memory.services.note import note
from memory.services.scope import change_scope
from tests.fakes import user_texts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shared(resource, profile):
    """Return two threads with one memory."""
    profile.memory_options = {"scope": "resource"}
    profile.save()
    return [start(resource, profile) for _ in range(2)]


async def say(thread, text, models):
    await sync_to_async(send)(thread.pk, text)
    await run_turns(thread.pk, resolve=models)


async def told(phrase):
    return await Blob.objects.filter(text__contains=phrase).aexists()


async def test_what_another_conversation_was_told_goes_with_the_erased_message(shared, models):
    one, other = shared
    await say(one, "The code is 7481.", models)
    await say(other, "Hello", models)
    assert await told("7481")
    before = await MemoryRecord.objects.aget()

    await sync_to_async(erase_messages)(one.pk, 1, 1)

    assert not await told("7481")
    assert (await MemoryRecord.objects.aget()).epoch > before.epoch
    await say(other, "And now?", models)
    assert "7481" not in "".join(user_texts(models.asked("actor")[-1]))


async def test_what_was_told_while_memory_was_shared_goes_when_it_is_so_no_more(shared, models):
    one, other = shared
    await say(one, "The code is 7481.", models)
    await say(other, "Hello", models)
    await sync_to_async(change_scope)(one.resource_id, "thread")

    await sync_to_async(erase_messages)(one.pk, 1, 1)
    assert not await told("7481")


async def test_an_erased_note_goes_from_the_requests_of_every_conversation(shared, models):
    record = await sync_to_async(record_of)(shared[0])
    line = await sync_to_async(note)(record.pk, "The code is 7481.")
    for thread in shared:
        await say(thread, "Hello", models)
    assert await told("7481")

    await sync_to_async(erase_line)(line.pk)
    assert not await told("7481")
