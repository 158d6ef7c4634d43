"""Let a scripted Actor answer, and look at what is stored."""

import asyncio

from asgiref.sync import sync_to_async
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents.models import Turn
from agents.services.send import send
from agents.services.turn import run_turns
from memory.messages import load, open_calls
from memory.models import Message
from memory.services.due import run_due
from tests.fakes import Models, job

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 3


class Actor:
    """Stream what a script says, step by step, and remember every request.

    A step is a list of texts and of tool calls ``(tool, arguments)``; an event in it is waited
    for, an exception raised.
    """

    def __init__(self, *steps, observer=None):
        self.steps = list(steps)
        self.requests = []
        self.infos = []
        self.reached = asyncio.Event()
        self.memory = observer or Models()

    def __call__(self, name):
        return FunctionModel(self.memory._answer, stream_function=self._play, model_name="fake")

    async def _play(self, messages, info):
        assert job(info) == "actor"
        self.requests.append(list(messages))
        self.infos.append(info)
        step = self.steps.pop(0) if self.steps else ["Understood."]
        for number, item in enumerate(step):
            if isinstance(item, asyncio.Event):
                self.reached.set()
                await item.wait()
            elif isinstance(item, Exception):
                raise item
            elif isinstance(item, str):
                yield item
            else:
                tool, arguments = item
                yield {number: DeltaToolCall(tool, arguments, tool_call_id=f"call-{tool}-{number}")}


async def ask(thread, *prompts):
    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)


async def talk(thread, models, *prompts):
    """Send prompts one by one, each answered and observed before the next."""
    for prompt in prompts:
        await ask(thread, prompt)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)


async def texts():
    return [m.text async for m in Message.objects.order_by("position")]


async def statuses():
    return [t.status async for t in Turn.objects.order_by("number")]


async def nothing_is_open(thread):
    stored = [load(m.payload) async for m in Message.objects.order_by("position")]
    return open_calls(stored) == []


def is_sentence(text):
    return text[:1].isupper() and text.endswith(".") and "\n" not in text
