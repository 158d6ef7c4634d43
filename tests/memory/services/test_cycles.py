from datetime import timedelta

import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError

from memory.engine.parsing import BadOutput
from memory.llm import ModelUnavailable
from memory.models import Blob, Cycle, MemoryRecord
from memory.services import cycles, observe
from memory.services.cycles import LONGEST_BACKOFF, backoff, rest_after

from . import play

LONGEST = timedelta(seconds=LONGEST_BACKOFF)


class Limited(ModelHTTPError):
    """Fail as a provider does that says when to come back."""

    def __init__(self, seconds, status=429):
        super().__init__(status, "fake")
        self.retry_after = seconds


def test_a_lane_rests_longer_each_time_up_to_a_bound():
    rests = [rest_after(attempt, BadOutput("Nothing of use.", "")) for attempt in range(1, 10)]

    assert rests == sorted(rests)
    assert rests[0] == timedelta(seconds=2)
    assert rests[-1] == LONGEST


def test_a_provider_that_says_when_to_come_back_is_left_alone_until_then():
    assert rest_after(1, Limited(45.0)) == timedelta(seconds=45)
    assert rest_after(7, Limited(45.0)) == LONGEST
    assert rest_after(1, Limited(None)) == backoff(1)


@pytest.mark.parametrize(
    "error",
    [
        ModelHTTPError(401, "fake"),
        ModelHTTPError(404, "fake"),
        ModelHTTPError(400, "fake"),
        ModelUnavailable("Model “fake” is not set up."),
        UserError("Set OPENAI_API_KEY."),
        ModelAPIError("fake", "refused"),
    ],
)
def test_what_no_repetition_mends_rests_the_longest_at_once(error):
    assert rest_after(1, error) == LONGEST


@pytest.mark.parametrize(
    "error", [ModelHTTPError(503, "fake"), ModelHTTPError(429, "fake"), TimeoutError()]
)
def test_what_passes_is_tried_again_soon(error):
    assert rest_after(1, error) == backoff(1)


@pytest.mark.django_db
def test_a_failed_cycle_says_when_the_next_may_be(thread):
    play.talk(thread, 2)
    claimed = observe.claim(thread.pk)
    cycles.fail(claimed.cycle, Limited(600.0))

    cycle = Cycle.objects.get()
    rest = cycle.next_attempt_at - cycle.finished_at
    assert timedelta(seconds=590) < rest < timedelta(seconds=610)


@pytest.mark.django_db
@pytest.mark.parametrize(("epoch", "texts"), [(0, ["Of bees"]), (1, [])])
def test_a_failed_call_keeps_its_text_unless_memory_was_changed_meanwhile(thread, epoch, texts):
    play.talk(thread, 2)
    claimed = observe.claim(thread.pk)
    claimed.cycle.request_text = "Of bees"
    MemoryRecord.objects.update(epoch=epoch)

    cycles.fail(claimed.cycle, TimeoutError())

    assert Cycle.objects.get().status == "failed"
    assert list(Blob.objects.values_list("text", flat=True)) == texts
