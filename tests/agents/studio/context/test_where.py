import pytest
from django.utils import timezone

from agents.access import threads_for
from agents.services.thread import start
from agents.studio.context.ahead import Ahead
from agents.studio.context.asked import Asked
from agents.studio.context.where import Search
from memory.models import Line, MemoryRecord
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.note import note
from tests.memory.services.play import (
    answer,
    buffer_all,
    condense,
    line,
    question,
    reflected,
    request,
    say,
    talk,
    words,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def where(ada):
    """Return a function that asks where something is, and returns the places in words."""

    def ask(thread, text, draft=""):
        ahead = Ahead(thread, timezone.now(), Asked(draft=draft))
        return [hit.place for hit in Search(ahead, text, threads_for(ada)).hits]

    return ask


@pytest.fixture
def observed(thread):
    """Have the first messages observed, of which one speaks of a unicorn."""
    say(thread, question(f"A unicorn. {words(60)}"), answer(words(60)))
    talk(thread, 5)
    buffer_all(thread)
    request(thread)
    assert Line.objects.filter(since__isnull=False).exists()
    return thread


def test_an_unobserved_message_is_sent(where, thread):
    say(thread, question("The hive is blue."))
    assert where(thread, "HIVE IS") == [place := where(thread, "1")[0]]
    assert place.startswith("In unobserved message 1 of ")


def test_an_observed_message_is_only_there_to_recall(where, observed):
    (place,) = where(observed, "unicorn")
    assert place.startswith("Only in a raw message, observed away (recall can find it): 1 of")


def test_without_the_tool_nothing_recalls_it(where, observed, profile):
    profile.tools = []
    profile.save()
    assert "no tool recalls it" in where(observed, "unicorn")[0]


def test_the_lines_that_rest_on_a_message_are_named(where, observed):
    places = where(observed, "message 1")
    assert places[0].startswith("Only in a raw message")
    assert places[1] == "In observation row 1"


def test_a_visible_line_is_sent(where, observed):
    assert where(observed, "seen 1-1")[0] == "In observation row 1"


def test_a_buffered_line_is_not_visible_yet(where, thread):
    talk(thread, 2)
    buffer_all(thread)
    assert where(thread, "seen 1-1") == ["In buffered chunk 1, not visible yet (waiting)"]


def test_a_chunk_that_the_next_request_shows_is_said_to_be(where, thread):
    talk(thread, 3)
    buffer_all(thread)
    places = where(thread, "seen 1-1", draft=words(400))
    assert places == ["In buffered chunk 1, not visible yet (shown with the next request)"]
    assert "activated first" in where(thread, "message 1", draft=words(400))[0]


def test_a_dropped_line_names_the_reflection(where, thread, profile):
    profile.memory_options = {**profile.memory_options, "observation_tokens": 100}
    profile.save()
    for _ in range(20):
        talk(thread, 1)
        buffer_all(thread)
        request(thread)
        condense(thread, output=lambda claimed: reflected(line("All of it", 1)))
        request(thread)
        if MemoryRecord.objects.get().generation:
            break
    places = where(thread, "seen 1-1")
    dropped = [place for place in places if "dropped by the reflection of revision" in place]
    assert dropped


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda note: forget(note.pk), "A line forgotten at revision 2"),
        (lambda note: edit(note.pk, "Something else"), "A line replaced by an edit at revision 2"),
    ],
)
def test_a_line_that_people_took_away_says_how(where, thread, act, said):
    request_of(thread)
    record = MemoryRecord.objects.get()
    act(note(record.pk, "Ada likes walnut."))
    assert where(thread, "walnut") == [said]


def request_of(thread):
    say(thread, question("Hello"))
    request(thread)


def test_what_another_conversation_says_is_said_to_be_there(where, thread, resource, profile):
    other = start(resource, profile, title="Roofs")
    say(other, question("A zebra on the roof."))
    assert where(thread, "zebra") == ["In another conversation, “Roofs”"]


def test_what_nobody_may_see_is_nowhere(where, thread, resource, profile, ben):
    hidden = start(resource.__class__.objects.create(key="ben", name="Ben"), profile)
    say(hidden, question("A zebra on the roof."))
    assert where(thread, "zebra")[0].startswith("Nowhere")


def test_the_agents_own_words_are_found(where, thread):
    assert where(thread, "be brief") == ["In the agent’s instructions"]


@pytest.mark.parametrize("text", ["", "x", " "])
def test_too_little_is_not_looked_for(where, thread, text):
    assert "two letters" in where(thread, text)[0]


def test_wildcards_are_only_letters(where, thread):
    say(thread, question("The hive is blue."))
    assert where(thread, "%%")[0].startswith("Nowhere")


def test_what_is_left_out_is_said_to_be(where, thread):
    from memory.services.configure import configure

    say(thread, question(f"A unicorn. {words(900)}"), answer("Yes."))
    configure(thread.pk, {"context_tokens": 1500, "message_tokens": 50_000})
    assert "Left out for want of room" in where(thread, "unicorn", draft=words(60))[0]
