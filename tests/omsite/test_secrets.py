"""Plant a key wherever one may turn up, and look for it in all that is written and shown."""

import io
import json
import logging

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.models.function import FunctionModel

from agents.models import Turn
from agents.services.turn import run_turns
from memory.models import Cycle
from memory.publish import publish_with
from memory.services.operate import observe_now
from omsite.logs import Json, WithoutSecrets
from tests.agents.services.acting import ask
from tests.memory.services.play import talk

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5"
PASSWORD = "correct-horse-battery"
#: What providers, their packages and models of one's own say when something is wrong.
FAILURES = {
    "a refused key": ModelHTTPError(
        401, "fake", {"error": {"message": f"Incorrect API key provided: {KEY}", "code": KEY}}
    ),
    "a wrong request": ModelHTTPError(400, "fake", f"Authorization: Bearer {KEY}"),
    "a broken server": ModelHTTPError(503, "fake", {"headers": {"x-api-key": KEY}}),
    "a wrong setting": UserError(f"Set the key {KEY} for http://me:{PASSWORD}@there/v1"),
    "a wrong value": ValueError(f"Illegal header value b'Bearer {KEY}' for {PASSWORD}"),
    "a lost connection": ConnectionError(f"http://me:{PASSWORD}@there/v1?api_key={KEY} refused"),
    "anything": RuntimeError(f"{KEY} {PASSWORD}"),
}


def failing(failure):
    def answer(messages, info):
        raise failure

    async def stream(messages, info):
        raise failure
        yield ""

    return lambda name: FunctionModel(answer, stream_function=stream, model_name="fake")


@pytest.fixture
def log():
    """Return what is written to the log, as a server writes it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Json())
    handler.addFilter(WithoutSecrets([PASSWORD]))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def told():
    """Return the events that are sent to pages."""
    events = []
    publish_with(events.append)
    yield events
    publish_with(None)


def rows():
    """Return all that is stored, table by table."""
    models = [
        *apps.get_app_config("memory").get_models(),
        *apps.get_app_config("agents").get_models(),
    ]
    return {model.__name__: str(list(model.objects.values_list())) for model in models}


def pages(thread, client):
    """Return each page that may speak of a failure."""
    cycle = Cycle.objects.get()
    addresses = [
        "/",
        "/chat/?resource=ada",
        f"/chat/{thread.pk}/",
        f"/chat/{thread.pk}/regions",
        f"/context/{thread.pk}/",
        f"/context/calls/{cycle.pk}/",
        f"/timeline/{thread.pk}/",
        f"/timeline/{thread.pk}/events.jsonl",
        f"/memory/{thread.pk}/",
        f"/settings/{thread.pk}/",
        f"/api/v1/threads/{thread.pk}/turns",
        f"/api/v1/threads/{thread.pk}/cycles",
        f"/api/v1/cycles/{cycle.pk}",
        "/admin/",
        "/admin/agents/turn/",
        f"/admin/agents/turn/{Turn.objects.get().pk}/change/",
        f"/admin/memory/cycle/{cycle.pk}/change/",
    ]
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, address
        streamed = response.streaming and b"".join(response.streaming_content)
        yield address, (streamed or response.content).decode()


def commands():
    for words in (["om", "status"], ["om", "list", "--json"], ["om", "verify"]):
        out = io.StringIO()
        call_command(*words, stdout=out)
        yield " ".join(words), out.getvalue()


def leaks(text):
    return KEY in text or PASSWORD in text


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_no_failure_tells_a_key(thread, ada, log, told, settings, failure):
    settings.MODEL_TRIES = 1
    await sync_to_async(talk)(thread, 4)
    await ask(thread, "Hello")
    await run_turns(thread.pk, resolve=failing(failure))
    await observe_now(thread.pk, resolve=failing(failure))

    assert (await Turn.objects.aget()).status == "failed"
    assert (await Cycle.objects.aget()).status == "failed"
    await sync_to_async(_nothing_leaks)(thread, ada)
    assert not leaks(json.dumps([str(event) for event in told]))
    assert log.getvalue().count("failed") >= 2
    assert not leaks(log.getvalue())


def _nothing_leaks(thread, user):
    user.is_superuser = user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    for places in (rows().items(), pages(thread, client), commands()):
        for place, text in places:
            assert not leaks(text), place
