"""Ask recall as a model does, and read what it is told."""

import re

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

from memory.services.recall import Asked, recall
from tests.memory.services.play import AT

SHOWN = re.compile(r"^\[(\d+)\] ", re.M)


def ask(thread, /, *, scope=None, **asked):
    """Return what is told to a model that asks in a thread."""
    return recall(thread.pk, Asked(**asked), scope=scope)


def shown(text):
    """Return the positions of the messages shown, in the order shown."""
    return [int(position) for position in SHOWN.findall(text)]


def thinking(text="Hm."):
    return ModelResponse(parts=[ThinkingPart(text)], timestamp=AT)


def saying_and_calling(text="I will look.", *ids, tool="search"):
    calls = [ToolCallPart(tool, {"query": "hive"}, call_id) for call_id in ids]
    return ModelResponse(parts=[TextPart(text), *calls], timestamp=AT)
