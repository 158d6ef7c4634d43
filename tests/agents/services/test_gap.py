"""A long silence before a prompt is stored with it, sent with it and observed with it."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from agents.services.begin import begin
from agents.services.send import send
from agents.services.turn import run_turns
from memory.messages import gap_of, load
from memory.models import Message, Thread
from memory.services.due import run_due
from tests.fakes import user_texts
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

SILENCE = timedelta(minutes=10)


@pytest.fixture
def marked(profile):
    profile.memory_options = {**profile.memory_options, "temporal_markers": True}
    profile.save()


async def begins(thread, after, prompt="And now?"):
    """Begin a turn so long after the thread was active last; return its prompt as stored."""
    await sync_to_async(send)(thread.pk, prompt)
    at = (await Thread.objects.aget(pk=thread.pk)).last_active_at + after
    await sync_to_async(begin)(thread.pk, at=at)
    return load((await Message.objects.alatest("position")).payload)


@pytest.mark.parametrize(
    ("after", "told"),
    [(SILENCE - timedelta(seconds=1), ""), (SILENCE, "10 minutes later")],
)
async def test_ten_minutes_of_silence_are_stored_with_the_prompt_that_ends_them(
    thread, marked, after, told
):
    await sync_to_async(play.talk)(thread, 1)
    prompt = await begins(thread, after)

    assert gap_of(prompt).partition(" — ")[0] == told
    assert len(prompt.parts) == (2 if told else 1)
    assert await Message.objects.acount() == 3


@pytest.mark.parametrize("talked", [True, False])
async def test_without_the_option_or_anything_before_it_no_silence_is_told(thread, profile, talked):
    profile.memory_options = {**profile.memory_options, "temporal_markers": not talked}
    await profile.asave()
    if talked:
        await sync_to_async(play.talk)(thread, 1)

    assert gap_of(await begins(thread, timedelta(days=2))) == ""


async def test_a_silence_is_told_to_the_actor_and_to_the_observer_once(thread, marked, models):
    await sync_to_async(play.talk)(thread, 1)
    moment = await Thread.objects.aget(pk=thread.pk)
    await Thread.objects.aupdate(last_active_at=moment.last_active_at - timedelta(days=3))
    await sync_to_async(send)(thread.pk, play.words(150))
    await run_turns(thread.pk, resolve=models)
    await run_due(thread.pk, resolve=models)

    (sent,) = models.asked("actor")
    assert sum(" later — " in text for text in user_texts(sent)) == 1
    (observed,) = models.asked("observer")
    assert "".join(user_texts(observed)).count("[3 days later — ") == 1
