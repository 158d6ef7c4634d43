from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import SignInFailure
from agents.services.sign_in import Throttled, begin, succeed, sweep

pytestmark = pytest.mark.django_db

HERE, THERE = "192.0.2.1", "192.0.2.2"
NOW = timezone.now()
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def tries(settings):
    settings.SIGN_IN_TRIES = {"account": 3, "address": 5}
    settings.SIGN_IN_WINDOW = 15 * MINUTE


def fail(times, name="ada", address=HERE, now=NOW):
    for _ in range(times):
        begin(name, address, now=now)


def wait(name="ada", address=HERE, now=NOW):
    with pytest.raises(Throttled) as throttled:
        begin(name, address, now=now)
    return throttled.value


def test_an_account_is_tried_so_often_from_wherever(settings):
    fail(2)
    fail(1, address=THERE)
    refused = wait(address="192.0.2.3")
    assert refused.retry_after == pytest.approx(900, abs=1)
    assert "try again in 15 min" in str(refused)
    begin("ben", HERE, now=NOW)


def test_an_address_tries_so_often_whichever_account():
    for name in "abcde":
        fail(1, name=name)
    wait(name="f")
    begin("f", THERE, now=NOW)


def test_a_name_is_one_account_however_it_is_written():
    fail(1, name="ada")
    fail(1, name=" Ada")
    fail(1, name="ADA")
    wait()


def test_who_keeps_trying_does_not_wait_longer():
    fail(3)
    for minute in range(1, 15):
        refused = wait(now=NOW + minute * MINUTE)
        assert refused.retry_after <= (15 - minute) * 60 + 1
    begin("ada", HERE, now=NOW + 15 * MINUTE)


def test_attempts_side_by_side_see_each_other():
    begun = [begin("ada", HERE, now=NOW) for _ in range(3)]
    wait()
    assert SignInFailure.objects.count() == len(begun)


def test_who_gets_in_begins_anew_but_others_who_tried_do_not():
    fail(2, address=THERE)
    succeed(begin("ada", HERE, now=NOW))
    fail(1)
    wait()


def test_getting_in_as_oneself_forgives_nothing_that_was_tried_with_others():
    for name in "abcd":
        fail(1, name=name)
        succeed(begin("mallory", HERE, now=NOW))
    fail(1, name="e")
    wait(name="f")


def test_nothing_that_was_typed_can_be_read():
    fail(1, name="hunter2")
    row = SignInFailure.objects.get()
    assert "hunter2" not in row.account
    assert HERE not in row.address
    assert len(row.account) == len(row.address) == 64


def test_zero_is_no_limit(settings):
    settings.SIGN_IN_TRIES = {"account": 0, "address": 0}
    fail(20)


def test_what_counts_no_more_is_deleted():
    fail(1, now=timezone.now() - 16 * MINUTE)
    fail(1, name="ben", now=timezone.now())
    sweep()
    assert SignInFailure.objects.count() == 1
