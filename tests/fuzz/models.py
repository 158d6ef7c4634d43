"""Answer as Actor, Observer and Reflector, each time when and how the harness says.

A model that is asked waits at a gate, which the harness opens with an answer. The Observer
writes down what each message said, the Reflector joins what its lines say, so that every
message can be found again.
"""

import asyncio
import json
import re
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from memory.services.cycles import FALLBACK_MODEL
from tests.fakes import job, user_texts

from .atoms import read, read_all, write

MESSAGE = re.compile(r"^\[#(\d+)\](.*?)(?=^\[#\d+\]|^</|\Z)", re.M | re.S)
THREAD = re.compile(r'^<thread id="([^"]+)">\n(.*?)\n</thread>', re.M | re.S)
LINE = re.compile(r"^(.*)\[#(\d+)\]\s*$", re.M)
SAID = "of what was said about the bees and their hives on the roof this spring"
TOOL = "look_up"
JUNK = "I am sorry, but I cannot help with that."


class Trouble(Exception):
    """Fail as a provider does."""


@dataclass(frozen=True)
class Answer:
    """Hold what the Actor says: a text, or tool calls; ``error`` breaks it off."""

    text: str = ""
    calls: tuple = ()
    error: Exception | None = None


@dataclass
class Gate:
    """Hold a model that was asked and waits to be told what to answer."""

    who: str
    messages: list
    answering: object = None
    opened: asyncio.Future = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def open(self, answer):
        self.opened.set_result(answer)


class Models:
    """Resolve model names of one process."""

    def __init__(self, process, world):
        self.process = process
        self.world = world
        self.gates = []

    def __call__(self, name):
        if name == FALLBACK_MODEL:
            return FunctionModel(self._fall_back, model_name=name)
        return FunctionModel(self._answer, stream_function=self._stream, model_name="fake")

    def waits(self, *, actor):
        """Return the gates at which the Actor, or the others, wait, oldest first."""
        self.gates = [gate for gate in self.gates if not gate.opened.done()]
        return [gate for gate in self.gates if (gate.who == "actor") is actor]

    async def _asked(self, messages, info):
        gate = Gate(job(info), list(messages))
        self.gates.append(gate)
        self.world.asked(self.process, gate)
        answer = await gate.opened
        if isinstance(answer, Exception):
            raise answer
        return answer(gate.messages) if callable(answer) else answer

    async def _fall_back(self, messages, info):
        self.world.happened["fallbacks"] += 1
        return ModelResponse(parts=[TextPart(GOOD[job(info)](messages))])

    async def _answer(self, messages, info):
        return ModelResponse(parts=[TextPart(await self._asked(messages, info))])

    async def _stream(self, messages, info):
        answer = await self._asked(messages, info)
        for index, said in enumerate(answer.calls):
            call_id = re.sub(r"\W+", "-", f"call-{write(read(said))}")
            yield {index: DeltaToolCall(TOOL, json.dumps({"said": said}), tool_call_id=call_id)}
        for word in re.findall(r"\S+\s*", answer.text):
            yield word
        if answer.error is not None:
            raise answer.error


def observe(messages):
    """Write down each message shown, in a line of its own, thread by thread."""
    said = "\n".join(user_texts(messages)).rpartition("<conversation>")[2]
    threads = THREAD.findall(said)
    if not threads:
        return f"<observations>\n{_written(said)}\n</observations>\n{_title(said)}"
    blocks = [
        f'<thread id="{label}">\n{_written(text)}\n{_title(text)}\n</thread>'
        for label, text in threads
    ]
    return "<observations>\n" + "\n".join(blocks) + "\n</observations>"


def observe_some(messages):
    """Leave the last thread out, where there are several."""
    whole = observe(messages)
    kept, tag, _ = whole.rpartition("<thread ")
    return f"{kept}</observations>" if tag and "<thread " in kept else whole


def _title(said):
    return f"<thread-title>Bees, part {len(said)}</thread-title>"


def _written(said):
    lines = []
    for number, text in MESSAGE.findall(said):
        if atoms := read(text):
            lines.append(f"* 🟡 (10:00) {write(atoms)} {SAID} [#{number}]")
    return "Date: March 2, 2026\n" + "\n".join(lines) if lines else "(none)"


def reflect(messages):
    """Join all lines shown to one or two that say the same."""
    lines = LINE.findall("\n".join(user_texts(messages)))
    half = len(lines) // 2 if len(lines) > 6 else 0
    parts = [part for part in (lines[:half], lines[half:]) if part]
    written = [
        f"* 🟡 (10:00) {write(read_all(text for text, _ in part)) or 'Of bees.'} "
        f"[#{','.join(number for _, number in part)}]"
        for part in parts
    ]
    return "<observations>\nDate: March 2, 2026\n" + "\n".join(written) + "\n</observations>"


def nothing(messages):
    """Say that nothing is worth keeping."""
    return "<observations>\n(none)\n</observations>"


def loop(messages):
    """Say the same for ever."""
    return "<observations>\n" + "* 🟡 (10:00) The bees, the bees again.\n" * 60 + "</observations>"


GOOD = {"observer": observe, "reflector": reflect}
THOUGHTS = {"empty": "", "junk": JUNK, "loop": loop, "nothing": nothing, "some": observe_some}
