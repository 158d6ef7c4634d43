"""What a pause, another model or the end of a turn does to what waits."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from agents.models import Turn
from agents.services.begin import begin
from agents.services.send import send
from agents.services.turn import run_turns
from memory.dispatch import cycles as switch
from memory.models import Cycle, Observation, Revision, Thread
from memory.services.due import run_due
from tests.fakes import Models
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

PAUSE = timedelta(minutes=5)


class Bell:
    """Remember which threads' cycles were woken."""

    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)


@pytest.fixture
def woken():
    bell = Bell()
    previous = switch.use(bell)
    yield bell.rung
    switch.use(previous)


@pytest.fixture
def options(profile):
    """Change options of the agent."""

    async def change(*, model=None, **changes):
        profile.memory_options = {**profile.memory_options, **changes}
        profile.model = model or profile.model
        await profile.asave()

    return change


async def ask(thread, *prompts):
    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)


async def waiting(thread):
    """Leave a chunk that waits for activation."""
    await sync_to_async(play.talk)(thread, 3)
    await sync_to_async(play.buffer_all)(thread)


async def causes():
    return [(r.cause, r.trigger) async for r in Revision.objects.order_by("number")]


async def begins(thread, after):
    """Begin a turn so long after the thread was active last."""
    await ask(thread, "And now?")
    at = (await Thread.objects.aget(pk=thread.pk)).last_active_at + after
    return await sync_to_async(begin)(thread.pk, at=at)


# the end of a turn


async def test_what_little_a_turn_leaves_is_buffered_when_it_ends(thread, models, options, woken):
    await options(buffer_on_idle=True)
    await ask(thread, "I keep bees.")
    await run_turns(thread.pk, resolve=models)
    assert thread.pk in woken
    assert await run_due(thread.pk, resolve=models) == 1

    cycle = await Cycle.objects.aget()
    assert (cycle.kind, cycle.trigger, cycle.status) == ("buffer", "idle", "done")
    assert (await Observation.objects.aget()).since is None
    assert await run_due(thread.pk, resolve=models) == 0


async def test_without_the_option_little_is_left_alone(thread, models, woken):
    await ask(thread, "I keep bees.")
    await run_turns(thread.pk, resolve=models)
    assert not woken
    assert await run_due(thread.pk, resolve=models) == 0


async def test_the_turn_that_ends_waits_for_no_observation(thread, models, options):
    await options(buffer_on_idle=True)
    await ask(thread, "I keep bees.")
    await run_turns(thread.pk, resolve=models)

    assert not models.asked("observer")
    assert (await Turn.objects.aget()).status == "done"


async def test_a_prompt_that_is_being_answered_is_not_buffered_for_rest(
    thread, models, options, woken
):
    await options(buffer_on_idle=True)
    await ask(thread, "I keep bees.", "How many are there?")
    running = await sync_to_async(begin)(thread.pk)
    assert running is not None
    assert await run_due(thread.pk, resolve=models) == 0


# a pause


@pytest.mark.parametrize(("after", "shown"), [(PAUSE, True), (PAUSE / 2, False)])
async def test_a_prompt_after_a_pause_shows_what_waits(thread, options, after, shown):
    await options(activate_after_idle="5m")
    await waiting(thread)
    await begins(thread, after)
    assert await causes() == ([("activate", "idle")] if shown else [])


async def test_auto_waits_as_long_as_the_actors_provider_keeps_a_prompt(thread, options):
    await options(activate_after_idle="auto", observer_model="groq:llama", model="anthropic:claude")
    await waiting(thread)
    await begins(thread, PAUSE)
    assert await causes() == [("activate", "idle")]


# another model


class Provided(Models):
    """Answer as a model of a provider."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __call__(self, name):
        model = super().__call__(name)
        model._model_name = self.name
        return model


@pytest.mark.parametrize(
    ("option", "model", "trigger"),
    [
        (True, "openai:gpt-5", ["provider_change"]),
        (True, "anthropic:claude-sonnet", []),
        (False, "openai:gpt-5", []),
    ],
)
async def test_another_model_shows_what_waits(thread, options, option, model, trigger):
    await options(activate_on_provider_change=option, model="anthropic:claude-sonnet")
    await ask(thread, "Hello")
    await run_turns(thread.pk, resolve=Provided("claude-sonnet-4-6"))
    await waiting(thread)
    await options(model=model)
    await begins(thread, timedelta(seconds=1))
    assert [why for _, why in await causes()] == trigger


async def test_a_conversation_without_answers_knows_of_no_other_model(thread, options):
    await options(activate_on_provider_change=True, model="openai:gpt-5")
    await waiting(thread)
    await begins(thread, timedelta(seconds=1))
    assert await causes() == []
