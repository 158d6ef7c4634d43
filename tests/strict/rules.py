"""What providers refuse: requests are laid out as each of them is sent them, and checked.

OpenAI: each call of a tool is answered directly after, once, and nothing else is answered.
Anthropic: turns begin with the user and alternate once they are merged; the results of a turn's
calls stand together at the head of the next. Google: a turn that calls functions follows a
user's turn, and exactly its responses follow it.
"""

from pydantic_ai.messages import (
    ModelRequest,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


class Violation(Exception):
    """Say which rule a request breaks."""


def check(messages):
    """Raise Violation when any of the providers would refuse the request."""
    for rules in (openai, anthropic, google):
        rules(messages)


def pieces(message):
    """Return a message as pairs of what a piece is, and the call or text it has."""
    found = []
    for part in message.parts:
        match part:
            case SystemPromptPart():
                found.append(("system", part.content))
            case UserPromptPart():
                items = [part.content] if isinstance(part.content, str) else part.content
                found += [("user", item) for item in items if isinstance(item, str)]
            case ToolReturnPart():
                found.append(("result", part.tool_call_id))
            case RetryFeedbackPart():
                found.append(("user", part.model_response()))
            case TextPart():
                found.append(("text", part.content))
            case ToolCallPart():
                found.append(("call", part.tool_call_id))
            case ThinkingPart():
                pass
            case _:
                raise Violation(f"There is no such piece: {part!r}")
    if not found and not any(isinstance(part, ThinkingPart) for part in message.parts):
        raise Violation("A message says nothing at all.")
    return found


def openai(messages):
    """Check the list of messages of a chat completion."""
    waiting = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            if waiting:
                raise Violation(f"OpenAI: the calls {waiting} are not answered.")
            calls = [call for kind, call in pieces(message) if kind == "call"]
            if len(set(calls)) < len(calls):
                raise Violation("OpenAI: two calls have the same id.")
            waiting = calls
            continue
        for kind, said in pieces(message):
            if kind == "result":
                if said not in waiting:
                    raise Violation(f"OpenAI: {said} answers no call before it.")
                waiting.remove(said)
            elif waiting:
                raise Violation(f"OpenAI: {kind} comes before the results of {waiting}.")
    if waiting:
        raise Violation(f"OpenAI: the calls {waiting} are not answered.")


def merged(messages):
    """Return turns of user and model with their pieces; system prompts stand apart."""
    turns = []
    for message in messages:
        role = "user" if isinstance(message, ModelRequest) else "model"
        found = [piece for piece in pieces(message) if piece[0] != "system"]
        if not found:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(found)
        else:
            turns.append((role, found))
    if not turns or turns[0][0] != "user" or turns[-1][0] != "user":
        raise Violation("A request begins and ends with the user.")
    return turns


def anthropic(messages):
    """Check the turns of a request to Claude."""
    turns = merged(messages)
    calls = []
    for role, found in turns:
        if role == "model":
            calls = [call for kind, call in found if kind == "call"]
            continue
        kinds = [kind for kind, _ in found]
        results = [said for kind, said in found if kind == "result"]
        if sorted(results) != sorted(calls):
            raise Violation(f"Anthropic: the calls {calls} are followed by the results {results}.")
        if "result" in kinds[len(results) :]:
            raise Violation("Anthropic: results stand after something else.")
        if any(kind == "user" and not said.strip() for kind, said in found):
            raise Violation("Anthropic: a text is empty.")
        calls = []


def google(messages):
    """Check the contents of a request to Gemini."""
    turns = merged(messages)
    for (role, found), following in zip(turns, [*turns[1:], None], strict=True):
        calls = [call for kind, call in found if kind == "call"]
        if role != "model" or not calls:
            continue
        head = following[1][: len(calls)] if following else []
        answers = [said for kind, said in head if kind == "result"]
        if sorted(answers) != sorted(calls):
            raise Violation(f"Google: {len(calls)} calls are followed by {len(answers)} responses.")
    answers = [said for role, found in turns for kind, said in found if kind == "result"]
    called = [said for role, found in turns for kind, said in found if kind == "call"]
    if sorted(answers) != sorted(called):
        raise Violation("Google: a response belongs to no call.")
