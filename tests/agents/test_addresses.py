import pytest
from django.test import RequestFactory

from agents.addresses import UNKNOWN, address_of


def asked(address, forwarded=None):
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return RequestFactory().get("/", REMOTE_ADDR=address, headers=headers)


def test_what_a_client_claims_is_not_believed(settings):
    settings.BEHIND_PROXY = False
    assert address_of(asked("192.0.2.1", "203.0.113.9")) == "192.0.2.1"


@pytest.mark.parametrize("forwarded", ["203.0.113.9", "198.51.100.7, 203.0.113.9"])
def test_behind_a_proxy_its_own_word_is_believed_and_no_other(settings, forwarded):
    settings.BEHIND_PROXY = True
    assert address_of(asked("127.0.0.1", forwarded)) == "203.0.113.9"


def test_a_proxy_that_says_nothing_is_the_address(settings):
    settings.BEHIND_PROXY = True
    assert address_of(asked("192.0.2.1")) == "192.0.2.1"


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", UNKNOWN),
        ("unix:", UNKNOWN),
    ],
)
def test_an_address_is_counted_as_its_network(settings, given, counted):
    settings.BEHIND_PROXY = False
    assert address_of(asked(given)) == counted
