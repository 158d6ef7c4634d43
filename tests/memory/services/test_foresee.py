from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.services.thread import start
from memory.models import MemoryRecord, Revision, Thread
from memory.services import kept
from memory.services.foresee import foresee, state_ahead, view_ahead
from memory.services.note import note
from memory.services.pin import pin

from .play import (
    AT,
    answer,
    buffer,
    buffer_all,
    condense,
    edit,
    question,
    request,
    say,
    talk,
    words,
)

pytestmark = pytest.mark.django_db
PROMPT = question(words(40))


@pytest.fixture
def shared(profile):
    profile.memory_options = {**profile.memory_options, "scope": "resource"}
    profile.save()


def foreseen(thread, prompt=PROMPT, **options):
    state = state_ahead(thread.pk)
    return foresee(state, view_ahead(state), prompt, at=AT, **options)


def sent(prepared):
    return [(b.kind, b.position, b.text, b.tokens, b.source) for b in prepared.blocks]


def comes_true(thread):
    """Foresee a request and compare it with the one that is then made."""
    ahead = foreseen(thread)
    kept.forget_everything()
    (position,) = say(thread, PROMPT)
    real = request(thread)
    assert ahead.prompt.position == position
    assert sent(ahead.prepared) == sent(real)
    assert ahead.prepared.hash == real.hash
    assert ahead.prepared.revision == real.revision
    assert ahead.prepared.wait_seconds == real.wait_seconds
    assert [m.parts[0].part_kind for m in ahead.prepared.messages] == [
        m.parts[0].part_kind for m in real.messages
    ]
    return ahead


def test_a_first_request_is_foreseen(thread):
    assert [b.kind for b in comes_true(thread).prepared.blocks] == ["prompt"]


def test_a_thread_without_memory_sends_everything(thread):
    talk(thread, 2)
    Thread.objects.filter(pk=thread.pk).update(remembers=False)

    ahead = comes_true(thread)

    assert [b.position for b in ahead.prepared.blocks] == [1, 2, 3, 4, 5]


def test_chunks_that_would_be_shown_first_are_lines_of_it(thread):
    talk(thread, 3)
    buffer_all(thread)
    talk(thread, 2)

    ahead = comes_true(thread)

    assert ahead.chunks
    assert ahead.prepared.blocks[0].kind == "memory"


def test_a_reflection_that_would_be_shown_first_stands_for_its_sources(thread):
    record = reflected_ahead(thread)
    ahead = comes_true(thread)
    assert ahead.reflects
    assert Revision.objects.filter(record=record, cause="reflect").exists()


def reflected_ahead(thread):
    """Let a reflection wait, with lines over the threshold, a note and a pin beside it."""
    for _ in range(30):
        say(thread, question(words(60)), answer(words(60)))
        buffer(thread)
        request(thread)
        if condense(thread):
            break
    record = MemoryRecord.objects.get()
    while foreseen(thread).reflects is False:
        say(thread, question(words(60)), answer(words(60)))
        buffer(thread)
        state = state_ahead(thread.pk)
        if state.reflection is None:
            condense(thread)
    return record


def test_a_reflection_that_was_overtaken_by_an_edit_is_not_foreseen(thread):
    record = reflected_ahead(thread)
    note(record.pk, "Beech is cheaper.")
    assert not comes_true(thread).reflects


def test_pins_stay_in_their_place_beside_a_reflection(thread):
    for _ in range(6):
        say(thread, question(words(60)), answer(words(60)))
        buffer_all(thread)
        request(thread)
    state = state_ahead(thread.pk)
    pin(view_ahead(state).lines[0].pk)
    reflected_ahead(thread)
    assert comes_true(thread).reflects


def test_other_conversations_of_a_shared_memory_are_in_it(shared, resource, profile):
    one, two = start(resource, profile, title="One"), start(resource, profile, title="Two")
    talk(one, 2)
    request(one)
    talk(two, 1)
    ahead = comes_true(two)
    assert "others" in [b.kind for b in ahead.prepared.blocks]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sharing", [False, True])
def test_whatever_happened_before_the_request_foreseen_is_the_one_made(
    resource, profile, seed, sharing
):
    random = Random(seed)
    profile.memory_options = {
        **profile.memory_options,
        "scope": "resource" if sharing else "thread",
    }
    profile.save()
    threads = [start(resource, profile, title=f"Thread {n}") for n in range(2)]
    for _ in range(25):
        thread = random.choice(threads)
        match random.randrange(6):
            case 0:
                buffer(thread)
            case 1:
                condense(thread)
            case 2:
                edited = MemoryRecord.objects.filter(revision__gt=0).first()
                edited and edit(edited)
            case _:
                say(thread, question(words(60)), answer(words(random.randint(5, 150))))
    for thread in threads:
        comes_true(thread)


def test_everything_buffered_may_be_shown_first(thread):
    talk(thread, 2, tokens=40)
    buffer_all(thread)
    assert not foreseen(thread).chunks

    ahead = foreseen(thread, everything=True)

    assert ahead.chunks
    assert ahead.prepared.blocks[0].kind == "memory"


def test_other_options_may_be_supposed(thread):
    talk(thread, 5)
    buffer_all(thread)
    state = state_ahead(thread.pk, {"message_tokens": 50_000})

    assert not foresee(state, view_ahead(state), PROMPT, at=AT).chunks
    assert foreseen(thread).chunks


def test_nothing_is_written(thread):
    talk(thread, 4)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        foreseen(thread)
    assert MemoryRecord.objects.count() == 0
    request(thread)
    buffer_all(thread)
    with CaptureQueriesContext(connection) as more:
        foreseen(thread)
    statements = [q["sql"].lstrip().split()[0] for q in [*seen, *more]]
    assert set(statements) == {"SELECT"}
    assert len(more) <= 6
