import json

import pytest

from agents.models import RequestSnapshot
from agents.services.begin import begin
from agents.services.erase import erase_messages
from agents.services.send import send
from agents.services.told import told
from agents.services.turn import close
from memory.config import MemoryOptions
from memory.models import Blob

pytestmark = pytest.mark.django_db


def options(**given):
    return MemoryOptions.model_validate(given)


def names(profile, given=None):
    texts = {each.kind: each.text for each in told(profile, given)}
    return [tool["name"] for tool in json.loads(texts.get("tools", "[]"))]


def test_instructions_come_before_tools(profile):
    first, second = told(profile, None)

    assert (first.kind, first.text, first.source) == ("instructions", "Be brief.", "agent tester")
    assert second.kind == "tools"
    assert 0 < first.tokens < second.tokens


def test_a_tool_the_options_switch_off_is_not_told(profile):
    assert names(profile) == ["current_time", "recall"]
    assert names(profile, options()) == ["current_time", "recall"]
    assert names(profile, options(retrieval=False)) == ["current_time"]


def test_a_tool_is_told_as_models_are_shown_it(profile):
    def told_of(given):
        texts = {each.kind: each.text for each in told(profile, given)}
        return json.loads(texts["tools"])[1]["parameters"]["properties"]

    assert "thread" in told_of(options(retrieval={"scope": "resource"}))
    assert "thread" not in told_of(options(retrieval={"scope": "thread"}))


def test_an_agent_without_either_tells_nothing(profile):
    profile.instructions, profile.tools = "", []

    assert told(profile, None) == told(None, None) == ()


def test_what_an_agent_is_told_outlasts_the_erasing_of_a_conversation(thread):
    send(thread.pk, "My code is 4711.")
    running = begin(thread.pk)
    close(running, running.turn.Status.STOPPED)

    erase_messages(thread.pk, 1, 1)

    blocks = {block["kind"]: block for block in RequestSnapshot.objects.get().blocks}
    assert Blob.objects.get(pk=blocks["instructions"]["hash"]).text == "Be brief."
    assert Blob.objects.filter(pk=blocks["tools"]["hash"]).exists()
    assert blocks["prompt"]["hash"] == ""
