import json

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.messages import ModelMessagesTypeAdapter

from agents.services.send import send
from agents.services.turn import run_turns
from memory.services.due import run_due
from tests.agents.services.test_turn import Actor

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 3


def item(piece):
    """Return one piece of a prompt so that it can be compared: a file by its type and name."""
    if isinstance(piece, str):
        return piece
    if piece["kind"] == "cache-point":
        return "(cache point)"
    return f"[{piece['media_type']} {piece['identifier']}]"


def part(payload):
    content = payload.get("content")
    pieces = content if isinstance(content, list) else [content]
    said = [item(piece) for piece in pieces if isinstance(piece, str) or "kind" in (piece or {})]
    named = [payload.get(name) for name in ("tool_name", "args", "tool_call_id")]
    return (payload["part_kind"], tuple(said), *map(str, named))


def parts(messages):
    """Return what messages say part by part: requests in a row are one when they are sent."""
    return [(each["kind"], *part(one)) for each in messages for one in each["parts"]]


def differences(page, received, info):
    """Return where a request as the page shows it differs from what a model received."""
    told = {entry["kind"]: entry["content"] for entry in page if entry["role"] in ROLES}
    shown = parts(entry["content"] for entry in page if entry["role"] not in ROLES)
    came = parts(ModelMessagesTypeAdapter.dump_python(received, mode="json"))
    tools = [
        {"name": t.name, "description": t.description, "parameters": t.parameters_json_schema}
        for t in info.function_tools
    ]
    pairs = [
        ("instructions", told.get("instructions"), info.instructions),
        ("tools", told.get("tools", []), json.loads(json.dumps(tools))),
        ("parts", len(shown), len(came)),
        *((f"part {n}", a, b) for n, (a, b) in enumerate(zip(shown, came, strict=False))),
    ]
    return [(name, ours, theirs) for name, ours, theirs in pairs if ours != theirs]


ROLES = ("system", "tools")


@pytest.fixture
def signed_in(client, ada):
    client.force_login(ada)
    return client


@pytest.fixture
def page(signed_in):
    """Return a function that reads the context pages of a thread."""

    def read(thread, path="", **query):
        return signed_in.get(f"/context/{thread.pk}/{path}", query)

    return read


@pytest.fixture
def numbers(signed_in):
    """Return a function that reads the next request of a thread as the composer does."""

    def read(thread, draft=""):
        return signed_in.post(f"/context/{thread.pk}/next.json", {"draft": draft}).json()

    return read


@pytest.fixture
def entries(page):
    """Return a function that reads a request of a thread as the page offers it for download."""

    def read(thread, **query):
        answer = page(thread, "raw.json", **query)
        assert answer.status_code == 200
        return json.loads(answer.content)

    return read


async def talk(thread, actor, *prompts):
    """Send prompts one by one, each answered and observed before the next."""
    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)
        await run_turns(thread.pk, resolve=actor)
        await run_due(thread.pk, resolve=actor)


@pytest.fixture
def actor():
    return Actor()
