"""A model that answers by script and refuses what any provider would refuse."""

import json
import random

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from tests.fakes import Models, job
from tests.strict.rules import Violation, check


class Strict:
    """Play the Actor step by step, each request checked first; remember all of them.

    A step is a list of texts, of calls ``(tool, arguments)`` and of exceptions, or a function
    of the request that returns one. When the script is over the answer is "Done.". An Observer
    and a Reflector answer as in ``Models``.
    """

    def __init__(self, *steps, memory=None):
        self.steps = list(steps)
        self.requests = []
        self.violations = []
        self.memory = memory or Models()
        self.calls = 0

    def __call__(self, name):
        return FunctionModel(self._answer, stream_function=self._stream, model_name="strict")

    def _next(self, messages):
        self.requests.append(list(messages))
        try:
            check(messages)
        except Violation as violation:
            self.violations.append(str(violation))
            raise
        step = self.steps.pop(0) if self.steps else ["Done."]
        return step(messages) if callable(step) else step

    def _answer(self, messages, info):
        if job(info) != "actor":
            return self.memory._answer(messages, info)
        parts = []
        for item in self._next(messages):
            if isinstance(item, BaseException):
                raise item
            parts.append(TextPart(item) if isinstance(item, str) else self._call(*item))
        return ModelResponse(parts=parts)

    async def _stream(self, messages, info):
        if job(info) != "actor":
            async for word in self.memory._stream(messages, info):
                yield word
            return
        for number, item in enumerate(self._next(messages)):
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, str):
                yield item
            else:
                part = self._call(*item)
                arguments = part.args_as_json_str()
                yield {
                    number: DeltaToolCall(part.tool_name, arguments, tool_call_id=part.tool_call_id)
                }

    def _call(self, tool, arguments):
        self.calls += 1
        return ToolCallPart(tool, arguments, f"call-{self.calls}")


def page(number, tokens=2000):
    """Return a page of results as a tool gives it: JSON of about so many tokens."""
    rng = random.Random(number)
    rows, size = [], 0
    while size < tokens:
        row = {
            "id": f"ord_{rng.randrange(16**10):010x}",
            "customer": {"name": rng.choice(NAMES), "city": rng.choice(CITIES)},
            "placed_at": f"2026-0{rng.randint(1, 9)}-{rng.randint(10, 28)}T10:05:00Z",
            "items": [{"sku": rng.randrange(10**6), "count": rng.randint(1, 9)} for _ in "ab"],
            "total": round(rng.uniform(5, 900), 2),
        }
        rows.append(row)
        size += 75
    return json.dumps({"page": number, "rows": rows, "next": number + 1})


NAMES = ("Ada Brandt", "Ben Okafor", "Chiara Lunghi", "Dai Nakamura", "Éva Tóth")
CITIES = ("Leipzig", "Porto", "Kraków", "Ōsaka", "Lagos")
