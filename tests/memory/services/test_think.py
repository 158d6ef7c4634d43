"""What an Observer is asked passes the hooks, and what it wrote passes them and the extractors."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.messages import ModelResponse, ToolCallPart

from memory.config import merged
from memory.engine.values import Message, MessageKind, Part, PartKind, Section
from memory.extraction import Extractor
from memory.hooks import HookFailed, Hooks, Occasion, configured
from memory.models import Cycle, Line, Observation
from memory.services import reflect
from memory.services.due import run_due
from memory.services.look import look
from memory.services.material import Material
from memory.services.think import think
from tests.fakes import Models, observe_each
from tests.memory.services import play

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OCCASION = Occasion(thread=None, resource=None, trigger="manual")


def said(position, text):
    parts = (Part(PartKind.USER, text),)
    return Message(position, MessageKind.REQUEST, parts, tokens=9, at=AT)


def material(*texts, extractors=(), extracted=None):
    """Return material that no table holds."""
    messages = [said(position, text) for position, text in enumerate(texts, 1)]
    return Material(
        sections=(Section(label="", messages=messages),),
        extracted=(extracted or {},),
        previous=(),
        options=merged({}, {"observer_model": "fake"}),
        zone=ZoneInfo("UTC"),
        actor_model="fake",
        extractors=tuple(extractors),
    )


class Keeps:
    """Keep from the Observer whatever does not hold a word."""

    def __init__(self, word):
        self.word = word

    def before_observation(self, messages):
        return [m for m in messages if any(self.word in part.text for part in m.parts)]


class Told:
    """Write down the trigger of what began and the usage of what ended."""

    def __init__(self):
        self.words = []

    def on_observation_start(self, occasion):
        self.words.append(occasion.trigger)

    def on_observation_end(self, occasion):
        self.words.append(occasion.usage["model"])


class Breaks:
    def after_observation(self, output):
        raise OSError("The disk is full.")


async def thought(found, *hooks, models=None):
    models = models or Models()
    return await think(
        found, found.request(), OCCASION, hooks=Hooks(list(hooks), "await"), resolve=models
    )


def with_mood(text):
    return f"{observe_each(text)}\n<mood>calm</mood>"


async def test_a_conversation_that_is_stored_nowhere_is_summarised_with_hooks_and_extractors():
    told, mood = Told(), Extractor("Mood", "One word.", on_extracted=lambda v, _: v.upper())
    found = material("I keep bees.", "They are well.", extractors=[mood], extracted={"age": 7})

    thoughts = await thought(found, told, models=Models(observer=with_mood))

    (one,) = thoughts.each
    assert [line.cites for line in one.output.lines] == [(1,), (2,)]
    assert one.extracted == {"age": 7, "mood": "CALM"}
    assert told.words == ["manual", "fake"]


class Fills(Models):
    """Fill in what a structured extractor asks for, and keep with which settings."""

    settings = ()

    def _answer(self, messages, info):
        if not info.output_tools:
            return super()._answer(messages, info)
        self.settings = info.model_settings
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"city": "Bonn"})])


async def test_values_filled_in_are_on_the_bill_and_asked_for_with_the_observers_settings():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    where = Extractor("Where", "Where do they live?", schema=schema)
    found = material("I live in Bonn.", extractors=[where])
    options = merged({}, {"observer_model": "fake", "observer_settings": {"max_tokens": 77}})
    models = Fills()

    without = await thought(replace(found, extractors=()))
    thoughts = await thought(replace(found, options=options), models=models)

    assert thoughts.each[0].extracted == {"where": {"city": "Bonn"}}
    assert thoughts.reply.input_tokens > without.reply.input_tokens
    assert models.settings["max_tokens"] == 77


async def test_of_nothing_said_nothing_is_made_and_nobody_is_asked():
    models = Models()

    thoughts = await thought(material(), models=models)

    assert thoughts.each[0].output.lines == ()
    assert models.requests == []


async def test_a_hook_keeps_messages_from_the_observer():
    models = Models()

    await thought(material("I keep bees.", "The key is 7."), Keeps("bees"), models=models)

    (asked,) = models.asked("observer")
    assert "I keep bees." in str(asked)
    assert "The key is 7." not in str(asked)


async def test_a_hook_that_fails_fails_the_observation():
    with pytest.raises(HookFailed, match="after_observation failed"):
        await thought(material("I keep bees."), Breaks())


class Quiet:
    def before_observation(self, messages):
        return []


class Shorter:
    def after_observation(self, output):
        return replace(output, lines=output.lines[:1])


class Later:
    def before_reflection(self, lines):
        return lines[1:]


class Wiped:
    def after_reflection(self, output):
        return replace(output, lines=())


QUIET, SHORTER, BREAKS, LATER, WIPED = Quiet(), Shorter(), Breaks(), Later(), Wiped()
talk = sync_to_async(play.talk)


@pytest.fixture
def hooks(settings):
    """Configure one hook of this module by its name."""

    def use(name):
        settings.MEMORY_HOOKS = [f"{__name__}.{name}"]
        configured.cache_clear()

    yield use
    configured.cache_clear()


@pytest.mark.django_db(transaction=True)
async def test_what_a_hook_keeps_back_is_covered_without_asking_anybody(thread, models, hooks):
    hooks("QUIET")
    await talk(thread, 2)

    assert await run_due(thread.pk, resolve=models) == 1

    assert models.requests == []
    observation = await Observation.objects.aget()
    assert (observation.first_position, observation.last_position) == (1, 4)
    assert not await Line.objects.aexists()
    assert (await Cycle.objects.aget()).status == "done"
    assert await run_due(thread.pk, resolve=models) == 0


@pytest.mark.django_db(transaction=True)
async def test_what_a_hook_makes_of_the_observations_is_what_is_kept(thread, models, hooks):
    hooks("SHORTER")
    await talk(thread, 2)

    await run_due(thread.pk, resolve=models)

    assert await Line.objects.acount() == 1


@pytest.mark.django_db(transaction=True)
async def test_where_a_hook_fails_the_cycle_says_so_and_nothing_counts_as_observed(
    thread, models, hooks
):
    hooks("BREAKS")
    await talk(thread, 2)

    await run_due(thread.pk, resolve=models)

    cycle = await Cycle.objects.aget()
    assert (cycle.status, "after_observation failed" in cycle.error) == ("failed", True)
    assert not await Observation.objects.aexists()


def condensing(thread):
    """Have a thread's lines claimed to be condensed."""
    while (view := look(thread.pk)).tokens < 240:
        play.talk(thread, 2)
        play.buffer_all(thread)
        play.request(thread)
    return reflect.claim(thread.pk), view


@pytest.mark.django_db(transaction=True)
async def test_a_line_condensed_rests_on_what_it_cites_where_a_hook_left_lines_out(thread, hooks):
    claimed, _ = await sync_to_async(condensing)(thread)
    hooks("LATER")

    def cite_the_first(_):
        return "<observations>\nDate: March 2, 2026\n* 🔴 (10:00) Bees [#1]\n</observations>"

    await reflect.run(claimed, resolve=Models(reflector=cite_the_first))

    line = await Line.objects.aget(observation__kind="reflection")
    shown = claimed.lines[1]
    assert (line.first_position, line.last_position) == (shown.first_position, shown.last_position)


@pytest.mark.django_db(transaction=True)
async def test_a_hook_that_leaves_nothing_of_a_reflection_wipes_nothing(thread, models, hooks):
    claimed, before = await sync_to_async(condensing)(thread)
    hooks("WIPED")

    await reflect.run(claimed, resolve=models)

    cycle = await Cycle.objects.aget(pk=claimed.cycle.pk)
    assert (cycle.status, "after_reflection left no lines" in cycle.error) == ("failed", True)
    after = await sync_to_async(look)(thread.pk)
    assert [line.pk for line in after.lines] == [line.pk for line in before.lines]
