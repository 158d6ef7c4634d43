"""Make up messages of about 175 tokens, and models that answer at once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from random import Random

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.fakes import LISTED, NUMBER, job, user_texts

WHO = ("My manager", "A customer in Porto", "The platform team", "My sister", "The accountant")
DID = ("asked me to move", "postponed", "has reviewed", "wants to rewrite", "broke", "measured")
WHAT = ("the billing service", "the garden fence", "the quarterly report", "a batch of invoices")
WHEN = ("by Thursday afternoon", "before March 14", "last week", "twice since January", "yesterday")
WHY = (
    "because the numbers did not match the ledger",
    "since two of the tests were flaky",
    "although the budget is only 4,200 euros",
    "because the delay went from 120 ms to 480 ms",
)
THREAD = re.compile(r'<thread id="([^"]+)">\n(.*?)\n</thread>', re.S)
SENTENCES = 7
CHUNKS = 8


def paragraph(random: Random, sentences: int = SENTENCES) -> str:
    """Return English of about 25 tokens a sentence."""
    pick = random.choice
    return " ".join(
        f"{pick(WHO)} {pick(DID)} {pick(WHAT)} (ticket {random.randrange(1000, 9999)}) "
        f"{pick(WHEN)}, {pick(WHY)}."
        for _ in range(sentences)
    )


class Instant:
    """Answer as Actor, Observer and Reflector without thinking: what is timed is our own work."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)
        self.calls = {"actor": 0, "observer": 0, "reflector": 0}
        self._model = FunctionModel(self._answer, stream_function=self._stream, model_name="fake")

    def __call__(self, name: str) -> FunctionModel:
        return self._model

    def _text(self, messages: list[ModelMessage], info: AgentInfo) -> str:
        who = job(info)
        self.calls[who] += 1
        if who == "actor":
            return paragraph(self.random)
        text = "\n".join(user_texts(messages))
        threads = THREAD.findall(text) if who == "observer" else []
        if threads:
            body = "\n".join(
                f'<thread id="{label}">\n{self._lines(who, inside)}\n</thread>'
                for label, inside in threads
            )
        else:
            body = self._lines(who, text)
        hint = "<current-task>Plan the week</current-task>" if who == "observer" else ""
        return f"<observations>\n{body}\n</observations>\n{hint}"

    def _lines(self, who: str, text: str) -> str:
        numbers = list(dict.fromkeys((NUMBER if who == "observer" else LISTED).findall(text)))
        # An Observer writes about a tenth of what it reads, a Reflector half.
        kept = numbers if who == "observer" else numbers[::2]
        lines = [f"* 🟡 (10:00) {paragraph(self.random, 1)[:90]} [#{number}]" for number in kept]
        return "\n".join(["Date: March 2, 2026", *lines])

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(self._text(messages, info))])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        text = self._text(messages, info)
        size = -(-len(text) // CHUNKS)
        for start in range(0, len(text), size):
            yield text[start : start + size]
