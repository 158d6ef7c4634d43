import pytest

from agents.services.thread import start
from memory.services.foresee import foresee, state_ahead, view_ahead
from memory.services.scope import change_scope
from memory.services.suppose import in_scope

from .play import AT, buffer_all, question, request, talk, words

pytestmark = pytest.mark.django_db
PROMPT = question(words(40))


@pytest.fixture
def threads(resource, profile):
    pair = [start(resource, profile, title=title) for title in ("Hives", "Roofs")]
    for turns, thread in zip((6, 7), pair, strict=True):
        talk(thread, turns)
        buffer_all(thread)
        request(thread)
        talk(thread, 1)
    return pair


def texts(thread, scope=""):
    state = state_ahead(thread.pk)
    view = view_ahead(state)
    ahead = foresee(state, in_scope(view, scope) if scope else view, PROMPT, at=AT)
    return [(b.kind, b.position, b.text) for b in ahead.prepared.blocks]


def test_a_shared_memory_is_supposed_as_it_would_be(threads, resource):
    one, _ = threads
    supposed = texts(one, "resource")
    assert supposed != texts(one)

    change_scope(resource.pk, "resource")

    assert texts(one) == supposed
    assert "others" in [kind for kind, _, _ in supposed]


def test_separate_memories_are_supposed_as_they_would_be(threads, resource):
    change_scope(resource.pk, "resource")
    one, _ = threads
    supposed = texts(one, "thread")
    assert supposed != texts(one)

    change_scope(resource.pk, "thread")

    assert texts(one) == supposed


def test_the_scope_there_is_changes_nothing(threads):
    state = state_ahead(threads[0].pk)
    view = view_ahead(state)

    assert in_scope(view, "thread") is view
    assert in_scope(view, "anything") is view
