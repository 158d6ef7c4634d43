import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from pydantic_ai.models.function import FunctionModel

from agents.aloud import Aloud
from agents.patient import LONGEST_WAIT, Patient, wait_after


def limited(seconds=None):
    error = ModelRateLimitError("m", "slow down")
    error.retry_after = seconds
    return error


class Provider:
    """Refuse as told, then answer."""

    def __init__(self, *refusals, during=None):
        self.refusals = list(refusals)
        self.during = during
        self.asked = 0
        self.slept = []
        self.settings = []
        self.heard = []

    async def _stream(self, messages, info):
        self.asked += 1
        self.settings.append(info.model_settings)
        if self.refusals:
            raise self.refusals.pop(0)
        yield "Hel"
        if self.during is not None:
            raise self.during
        yield "lo"

    async def sleep(self, seconds):
        self.slept.append(seconds)

    async def hear(self, event):
        self.heard.append(event)

    async def said(self, tries=3, **settings):
        patient = Patient(
            FunctionModel(stream_function=self._stream), tries=tries, sleep=self.sleep
        )
        result = await Agent(Aloud(patient, self.hear)).run("Hi", model_settings=settings or None)
        return result.output


async def test_a_busy_provider_is_asked_again_when_it_says():
    provider = Provider(limited(7.0), ModelOverloadedError("m", "busy"))
    assert await provider.said() == "Hello"
    assert provider.asked == 3
    assert provider.slept[0] == 7.0
    assert 1.5 <= provider.slept[1] <= 2.5


async def test_in_the_end_the_turn_learns_why():
    provider = Provider(*[limited(1.0)] * 5)
    with pytest.raises(ModelRateLimitError):
        await provider.said()
    assert (provider.asked, provider.slept) == (3, [1.0, 1.0])


async def test_one_try_is_one():
    provider = Provider(limited(1.0))
    with pytest.raises(ModelRateLimitError):
        await provider.said(tries=1)
    assert (provider.asked, provider.slept) == (1, [])


async def test_an_answer_that_breaks_off_is_not_begun_again():
    provider = Provider(during=limited(1.0))
    with pytest.raises(ModelRateLimitError):
        await provider.said()
    assert provider.asked == 1


async def test_the_tries_of_a_package_do_not_multiply_unless_wanted():
    provider = Provider()
    await provider.said()
    await provider.said(max_retries=2)
    assert [each["max_retries"] for each in provider.settings] == [0, 2]


@pytest.mark.parametrize(
    "error",
    [
        limited(LONGEST_WAIT + 1),
        ModelQuotaExceededError("m", "no credit"),
        ModelAuthenticationError("m", "no key"),
        ModelTimeoutError("m", "too long"),
        TimeoutError(),
        ValueError("ours"),
    ],
)
def test_what_waiting_does_not_mend_is_told_at_once(error):
    assert wait_after(error, 1) is None


def test_a_wait_grows_and_differs():
    waits = [[wait_after(limited(), tried) for _ in range(20)] for tried in (1, 2, 3)]
    for tried, each in enumerate(waits):
        assert all(0.75 * 2**tried <= wait <= 1.25 * 2**tried for wait in each)
        assert len(set(each)) > 1
