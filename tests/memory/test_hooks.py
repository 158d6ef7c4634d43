import asyncio
import logging
from datetime import UTC, datetime

import pytest
from django.core.exceptions import ImproperlyConfigured

from memory.engine.values import Message, MessageKind, Part, PartKind
from memory.hooks import HookFailed, Hooks, Occasion, ResultRedactor, loaded

OCCASION = Occasion(thread=None, resource=None, trigger="interval")


class Diary:
    """Write down what it is told, sync and async."""

    def __init__(self):
        self.told = []

    def on_observation_start(self, occasion):
        self.told.append(("start", occasion))

    async def on_observation_end(self, occasion):
        await asyncio.sleep(0)
        self.told.append(("end", occasion))


class Breaks:
    def __init__(self, *names):
        for name in names:
            setattr(self, name, self._break)

    def _break(self, value):
        raise OSError("The disk is full.\nDetails follow.")


def words(diary):
    return [word for word, _ in diary.told]


@pytest.mark.parametrize("execution", ["await", "background"])
async def test_a_cycle_is_told_at_its_start_and_with_its_usage_at_its_end(execution):
    diary = Diary()
    hooks = Hooks([diary], execution)

    async with hooks.observing(OCCASION) as work:
        work.usage = {"input_tokens": 7}
    await hooks.settled()

    assert words(diary) == ["start", "end"]
    started, ended = (occasion for _, occasion in diary.told)
    assert (started.trigger, started.usage, started.error) == ("interval", None, None)
    assert (ended.usage, ended.error) == ({"input_tokens": 7}, None)


@pytest.mark.parametrize("execution", ["await", "background"])
async def test_a_cycle_that_fails_tells_its_end_hooks_why_and_fails_as_it_would(execution):
    diary = Diary()
    hooks = Hooks([diary, Breaks("on_observation_end")], execution)

    with pytest.raises(KeyError, match="lost"):
        async with hooks.observing(OCCASION):
            raise KeyError("lost")
    await hooks.settled()

    assert words(diary) == ["start", "end"]
    assert isinstance(diary.told[-1][1].error, KeyError)


async def test_a_start_hook_that_is_awaited_and_fails_keeps_the_model_from_being_called():
    diary, asked = Diary(), []
    hooks = Hooks([Breaks("on_observation_start"), diary], "await")

    with pytest.raises(HookFailed, match=r"on_observation_start failed \(OSError\): The disk is"):
        async with hooks.observing(OCCASION):
            asked.append("model")

    assert not asked
    assert words(diary) == ["end"]
    assert isinstance(diary.told[0][1].error, HookFailed)


async def test_an_end_hook_that_is_awaited_and_fails_fails_the_cycle():
    with pytest.raises(HookFailed, match="on_reflection_end failed"):
        async with Hooks([Breaks("on_reflection_end")], "await").reflecting(OCCASION):
            pass


async def test_in_the_background_failures_are_logged_and_cost_the_others_nothing(caplog):
    diary = Diary()
    hooks = Hooks([Breaks("on_observation_start", "on_observation_end"), diary])

    with caplog.at_level(logging.WARNING):
        async with hooks.observing(OCCASION):
            pass
        await hooks.settled()

    assert words(diary) == ["start", "end"]
    assert "on_observation_start failed (OSError): The disk is full." in caplog.text
    assert "on_observation_end failed" in caplog.text


async def test_in_the_background_no_cycle_waits_for_its_hooks_and_each_keeps_its_order():
    gate, told = asyncio.Event(), []

    class Slow:
        async def on_observation_start(self, occasion):
            await gate.wait()
            told.append("start")

        async def on_observation_end(self, occasion):
            told.append("end")

    hooks = Hooks([Slow()])
    async with hooks.observing(OCCASION):
        told.append("work")
    assert told == ["work"]

    gate.set()
    await hooks.settled()
    assert told == ["work", "start", "end"]


async def test_when_awaited_hooks_run_in_the_order_given():
    told = []

    class Says:
        def __init__(self, name):
            self.name = name

        def on_reflection_start(self, occasion):
            told.append(self.name)

    async with Hooks([Says("first"), Says("second")], "await").reflecting(OCCASION):
        told.append("work")
    assert told == ["first", "second", "work"]


class Adds:
    def __init__(self, word):
        self.word = word

    async def before_observation(self, messages):
        return [*messages, self.word]

    def after_observation(self, output):
        return None


async def test_transforms_follow_one_another_and_none_leaves_what_is_there():
    hooks = Hooks([Adds("a"), Adds("b")])
    assert await hooks.transform("before_observation", []) == ["a", "b"]
    assert await hooks.transform("after_observation", "output") == "output"
    assert await hooks.transform("before_reflection", "lines") == "lines"


async def test_a_transform_may_leave_nothing():
    class Nothing:
        def before_observation(self, messages):
            return []

    assert await Hooks([Nothing()]).transform("before_observation", ["a"]) == []


async def test_a_transform_that_fails_fails_the_cycle_with_a_reason_for_people():
    with pytest.raises(HookFailed, match="The hook after_reflection failed") as raised:
        await Hooks([Breaks("after_reflection")]).transform("after_reflection", "output")
    assert "Details" not in str(raised.value)


async def test_a_transform_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="before_lunch is no transform; there are before_obs"):
        await Hooks().transform("before_lunch", [])


REDACTOR = ResultRedactor(("read_secret",))


def test_hooks_are_found_by_their_dotted_paths():
    redactor, diary = loaded([f"{__name__}.REDACTOR", f"{__name__}.Diary"])
    assert redactor is REDACTOR
    assert isinstance(diary, Diary)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.such.hooks", "nothing is there"),
        ("memory.hooks.MISSING", "nothing is there"),
        ("memory.tiers", "must have one of on_observation_start"),
    ],
)
def test_a_path_without_a_hook_is_refused(path, said):
    with pytest.raises(ImproperlyConfigured, match=f"MEMORY_HOOKS = {path}: {said}"):
        loaded([path])


def message(*parts):
    at = datetime(2026, 3, 2, tzinfo=UTC)
    return Message(1, MessageKind.REQUEST, parts, tokens=9, at=at)


def test_what_some_tools_returned_is_kept_from_the_observer_and_that_they_were_called_is_not():
    call = Part(PartKind.CALL, '{"key": 1}', tool="read_secret", call_id="1")
    result = Part(PartKind.RESULT, "the secret", tool="read_secret", call_id="1")
    failure = Part(PartKind.FAILURE, "no: the secret", tool="read_secret", call_id="2")
    picture = Part(PartKind.ATTACHMENT, "secret.png", tool="read_secret", media_type="image/png")
    other = Part(PartKind.RESULT, "the weather", tool="look_outside", call_id="3")
    said = Part(PartKind.USER, "the question")
    given = message(call, result, failure, picture, other, said)

    (redacted,) = REDACTOR.before_observation([given])

    assert redacted.parts[0] == call
    assert [part.text for part in redacted.parts[1:3]] == ["[not shown to memory]"] * 2
    assert redacted.parts[3:] == (other, said)
    assert given.parts[1].text == "the secret"
    assert (redacted.position, redacted.at) == (given.position, given.at)
