import pytest

from agents.services.thread import start

pytestmark = pytest.mark.django_db


def test_a_new_conversation_is_empty_and_has_its_agent(resource, profile):
    thread = start(resource, profile)
    assert (thread.agent, thread.title, thread.last_position) == ("tester", "", 0)
    assert thread.remembers


def test_a_conversation_with_an_agent_that_forgets_does_not_remember(resource, profile):
    profile.remembers = False
    assert not start(resource, profile).remembers


def test_a_conversation_can_begin_with_a_title(resource, profile):
    assert start(resource, profile, title="Bees").title == "Bees"
