import pytest

from agents.actor import build
from memory.capability import TurnMemory
from memory.config import MemoryOptions
from tests.fakes import Models
from tests.memory.services.play import AT

pytestmark = pytest.mark.django_db


@pytest.fixture
def memory(thread):
    return TurnMemory(thread.pk, prompt_position=1, at=AT, resolve=Models())


def tools_of(agent):
    return {name for toolset in agent.toolsets for name in getattr(toolset, "tools", {})}


def test_an_actor_has_the_tools_of_its_profile_and_no_others(profile, memory):
    profile.tools = ["recall", "fly"]
    assert tools_of(build(profile, model=Models()("fake"), memory=memory)) == {"recall"}


def test_an_actor_without_tools_can_be_built(profile, memory):
    profile.tools = []
    assert tools_of(build(profile, model=Models()("fake"), memory=memory)) == set()


def test_an_actor_is_given_the_tools_its_memory_options_allow(profile, memory):
    profile.tools = ["recall", "current_time"]
    off = MemoryOptions(retrieval=False)
    actor = build(profile, model=Models()("fake"), memory=memory, options=off)
    assert tools_of(actor) == {"current_time"}


def test_an_actor_uses_the_model_it_is_given(profile, memory):
    model = Models()("fake")
    assert build(profile, model=model, memory=memory).model is model


def test_a_profile_without_a_model_uses_the_servers(profile, settings):
    settings.ACTOR_MODEL = "openai:small"
    profile.model = ""
    assert profile.model_name == "openai:small"
