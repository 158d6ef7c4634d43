import pytest
from django.db import OperationalError, transaction
from psycopg import errors

from memory.services.anew import TRIES, anew

pytestmark = pytest.mark.django_db(transaction=True)


class Work:
    """Fail with an error so many times, then be done."""

    __name__ = "work"

    def __init__(self, error, times):
        self.error, self.times = error, times
        self.calls = []

    def __call__(self, *args, **options):
        self.calls.append((args, options))
        if len(self.calls) <= self.times:
            raise OperationalError("given up") from self.error
        return "done"


@pytest.mark.parametrize("error", [errors.DeadlockDetected(), errors.SerializationFailure()])
def test_what_the_database_gave_up_begins_anew_with_the_same_arguments(error):
    work = Work(error, times=2)
    assert anew(work)(1, two=2) == "done"
    assert work.calls == [((1,), {"two": 2})] * 3


def test_what_is_given_up_again_and_again_fails_at_last():
    work = Work(errors.DeadlockDetected(), times=99)
    with pytest.raises(OperationalError):
        anew(work)()
    assert len(work.calls) == TRIES


@pytest.mark.parametrize("error", [errors.AdminShutdown(), errors.LockNotAvailable(), None])
def test_other_failures_are_told_at_once(error):
    work = Work(error, times=1)
    with pytest.raises(OperationalError):
        anew(work)()
    assert len(work.calls) == 1


def test_inside_a_transaction_nothing_begins_anew():
    work = Work(errors.DeadlockDetected(), times=1)
    with pytest.raises(OperationalError), transaction.atomic():
        anew(work)()
    assert len(work.calls) == 1
