"""Models that say what a test tells them to."""

import re
from collections.abc import AsyncIterator, Callable

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

NUMBER = re.compile(r"^\[#(\d+)\]", re.M)
LISTED = re.compile(r"\[#(\d+)\]$", re.M)


def user_texts(messages: list[ModelMessage]) -> list[str]:
    """Return all user text of a request, in order."""
    texts = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                pieces = [item for item in content if isinstance(item, str)]
                whole = pieces[:1] and pieces[0].startswith("<memory>")
                texts += ["".join(pieces)] if whole else pieces
    return texts


def job(info: AgentInfo) -> str:
    """Tell which of the three models is asked."""
    first = (info.instructions or "").lstrip().split("\n")[0]
    return {"You are the Observer.": "observer", "You are the Reflector.": "reflector"}.get(
        first, "actor"
    )


def observe_each(text: str) -> str:
    """Write one line a message, so that every message can be traced."""
    numbers = list(dict.fromkeys(NUMBER.findall(text)))
    lines = [f"* 🟡 (10:00) Something was said in message {n} of its range [#{n}]" for n in numbers]
    return "<observations>\nDate: March 2, 2026\n" + "\n".join(lines) + "\n</observations>"


def merge_all(text: str) -> str:
    """Write one short line that rests on all lines shown."""
    numbers = ",".join(dict.fromkeys(LISTED.findall(text)))
    return (
        f"<observations>\nDate: March 2, 2026\n* 🔴 (10:00) All of it [#{numbers}]\n</observations>"
    )


class Models:
    """Answer as Actor, Observer and Reflector, and remember every request."""

    def __init__(
        self,
        *,
        actor: Callable[[list[ModelMessage]], str] = lambda messages: "Understood.",
        observer: Callable[[str], str] = observe_each,
        reflector: Callable[[str], str] = merge_all,
    ) -> None:
        self.answers = {"observer": observer, "reflector": reflector}
        self.actor = actor
        self.requests: list[tuple[str, list[ModelMessage]]] = []

    def __call__(self, name: str) -> FunctionModel:
        return FunctionModel(self._answer, stream_function=self._stream, model_name="fake")

    def asked(self, who: str) -> list[list[ModelMessage]]:
        """Return the requests one of the three received."""
        return [messages for asked, messages in self.requests if asked == who]

    def _text(self, messages: list[ModelMessage], info: AgentInfo) -> str:
        who = job(info)
        self.requests.append((who, list(messages)))
        if who == "actor":
            return self.actor(messages)
        return self.answers[who]("\n".join(user_texts(messages)))

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(self._text(messages, info))])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for word in re.findall(r"\S+\s*", self._text(messages, info)):
            yield word
