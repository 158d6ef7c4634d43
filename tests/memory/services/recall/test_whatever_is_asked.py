"""Whatever a model asks for, it is told nothing from beyond where it may look."""

import os

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.services.thread import start
from memory.engine.recall import KINDS, Mode
from memory.models import Resource, Thread
from memory.recall_tool import Recall
from memory.services.recall import Asked, Refused, recall
from tests.memory.services.play import answer, calling, question, returning, say

pytestmark = pytest.mark.django_db

EACH = settings(
    max_examples=int(os.environ.get("OM_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
#: What only the conversation of that name holds. Nobody asks for it by its word.
SECRETS = {name: f"{name}-7319" for name in ("own", "beside", "hidden", "unremembered", "strange")}


@pytest.fixture
def world(thread, resource, profile, allow):
    """Return conversations by name, all of which say much the same."""
    allow(True)
    theirs = Resource.objects.create(key="ben", name="Ben")
    found = {name: start(resource, profile) for name in ("beside", "hidden", "unremembered")}
    found |= {"own": thread, "strange": start(theirs, profile)}
    for name, thread in found.items():
        say(
            thread,
            question(f"My code is {SECRETS[name]}."),
            calling("a"),
            returning("a", text=f"The code {SECRETS[name]} was found."),
            answer(f"Your code is {SECRETS[name]}."),
        )
    Thread.objects.filter(pk=found["hidden"].pk).update(deleted_at=timezone.now())
    Thread.objects.filter(pk=found["unremembered"].pk).update(remembers=False)
    return found


NUMBERS = st.none() | st.integers(-3, 12) | st.integers() | st.just("1-9")
WORDS = st.sampled_from(["", "code", "code found", "ben", "%", "' OR 1=1 --", "*", "My code is"])
THREADS = st.sampled_from(["current", "all", "", "*", "%", "ben", "ada", "../ben", "' OR 1=1 --"])
NAMED = st.sampled_from(sorted(SECRETS)).map(lambda name: f"id of {name}")
WRITTEN = st.sampled_from([str, str.upper, "{{{}}}".format, "urn:uuid:{}".format, " {} ".format])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from([*Mode, "all", ""]) | st.text(max_size=8),
        "query": WORDS | st.text(max_size=20),
        "first": NUMBERS,
        "last": NUMBERS,
        "cursor": NUMBERS,
        "thread": THREADS | NAMED | st.text(max_size=40),
        "anchor": st.sampled_from(["start", "end", "middle"]),
        "page": st.integers(-50, 50),
        "limit": st.integers(-5, 10_000),
        "detail": st.sampled_from(["low", "high", "all"]),
        "part": NUMBERS,
        "part_kind": st.sampled_from(["any", *KINDS, "secret"]),
        "tool": st.sampled_from(["", "search", "%"]),
        "offset": st.integers(-5, 10**12),
        "before": st.sampled_from(["", "2026-03-31", "9999-12-31", "soon"]),
        "after": st.sampled_from(["", "0001-01-01", "2026-03-31", "soon"]),
    },
)


def told(world, given, written, scope):
    """Return what the tool tells a model that gives these arguments."""
    arguments = dict(given)
    named = str(arguments.get("thread", ""))
    if named.startswith("id of "):
        arguments["thread"] = written(str(world[named.removeprefix("id of ")].pk))
    try:
        asked = Recall.model_validate(arguments)
        return recall(world["own"].pk, Asked(**asked.model_dump()), scope=scope)
    except (Refused, ValidationError) as refusal:
        return str(refusal)


@EACH
@given(given=ARGUMENTS, written=WRITTEN)
@example(given={"thread": "id of strange"}, written=str)
@example(given={"thread": "id of hidden", "cursor": 1, "part": 1}, written=str)
@example(given={"mode": "words", "query": "code", "thread": "all"}, written=str)
@example(given={"mode": "threads"}, written=str)
def test_nothing_is_told_of_another_resource_nor_of_what_is_kept_out(world, given, written):
    found = told(world, given, written, "resource")
    for name in ("strange", "hidden", "unremembered"):
        assert SECRETS[name] not in found


@EACH
@given(given=ARGUMENTS, written=WRITTEN)
@example(given={"thread": "id of beside"}, written=str)
@example(given={"mode": "words", "query": "code", "thread": "all"}, written=str)
def test_in_a_thread_nothing_is_told_of_any_other(world, given, written):
    found = told(world, given, written, "thread")
    assert {name for name, secret in SECRETS.items() if secret in found} <= {"own"}


def test_what_may_be_told_is_told(world):
    everywhere = {"mode": "words", "query": "code", "thread": "all"}
    found = told(world, everywhere, str, "resource")
    assert {name for name, secret in SECRETS.items() if secret in found} == {"own", "beside"}
    assert SECRETS["beside"] in told(world, {"thread": "id of beside"}, str, "resource")
