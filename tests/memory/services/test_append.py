import pytest
from django.db import transaction
from pydantic_ai.messages import BinaryContent, ModelRequest, ToolReturnPart, UserPromptPart

from memory.models import Message, Thread
from memory.models.ids import new_id
from memory.services.append import append
from memory.tokens import MESSAGE_TOKENS, count_message
from memory.verify import verify
from tests.memory.services.play import AT, answer, calling, question, returning, say

pytestmark = pytest.mark.django_db


class Refused(Exception):
    pass


def refuse():
    raise Refused


def test_positions_follow_each_other_over_several_appends(thread):
    assert say(thread, question()) == [1]
    assert say(thread, answer(), question()) == [2, 3]
    assert say(thread, answer()) == [4]
    thread.refresh_from_db()
    assert thread.last_position == 4


def test_an_append_that_is_rolled_back_leaves_nothing(thread):
    say(thread, question())
    with transaction.atomic():
        say(thread, answer())
        transaction.set_rollback(True)

    assert say(thread, answer()) == [2]


def test_a_gap_in_the_positions_is_legal(thread):
    say(thread, question())
    Thread.objects.take_positions(thread.pk, 3)

    assert say(thread, answer()) == [5]
    assert [m.position for m in Message.objects.above(thread.pk, 0)] == [1, 5]


def test_the_fence_is_asked_before_anything_is_written(thread):
    asked = []

    def look_around():
        asked.append((Message.objects.count(), Thread.objects.get().last_position))

    append(thread.pk, [question()], at=AT, fence=look_around)

    assert asked == [(0, 0)]


def test_a_fence_that_refuses_leaves_nothing_written(thread):
    with pytest.raises(Refused):
        append(thread.pk, [question()], at=AT, fence=refuse)

    assert not Message.objects.exists()
    thread.refresh_from_db()
    assert thread.last_position == 0


def test_no_messages_take_no_position_and_ask_no_fence(thread):
    assert append(thread.pk, [], at=AT, fence=refuse) == []
    thread.refresh_from_db()
    assert thread.last_position == 0


def test_an_unknown_thread_is_refused_by_name(db):
    unknown = new_id()
    with pytest.raises(Thread.DoesNotExist, match=str(unknown)):
        append(unknown, [question()], at=AT)
    assert not Message.objects.exists()


@pytest.mark.parametrize("bad", ["\x00", "\ud83d"])
def test_characters_no_database_takes_are_replaced_and_the_rest_kept(thread, bad):
    say(thread, question(f"before{bad}after"), answer(f"before{bad}after"))

    assert [m.text for m in Message.objects.order_by("position")] == ["before\ufffdafter"] * 2
    assert bad not in str(Message.objects.first().payload)


def test_two_halves_of_a_surrogate_pair_become_their_character(thread):
    say(thread, question("\ud83d\ude00"))
    assert Message.objects.get().text == "\N{GRINNING FACE}"


def circle():
    hive = {"bees": 7}
    hive["neighbour"] = hive
    return hive


class Shy:
    def __repr__(self):
        raise RuntimeError("Not me.")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (circle(), "{'bees': 7, 'neighbour': {...}}"),
        (Shy(), "(Shy that cannot be written down)"),
        ({"hive": object}, "{'hive': <class 'object'>}"),
    ],
    ids=["circle", "shy", "class"],
)
def test_a_result_that_json_has_no_form_for_is_stored_in_words(thread, content, said):
    say(thread, question(), calling("a", "b"))
    good = ToolReturnPart("look", {"bees": 7}, "a", timestamp=AT)
    odd = ToolReturnPart("look", content, "b", timestamp=AT)
    (stored,) = append(thread.pk, [ModelRequest(parts=[good, odd], timestamp=AT)], at=AT)

    assert [part.content for part in stored.message.parts] == [{"bees": 7}, said]
    assert said in Message.objects.get(position=3).text
    assert odd.content is content


def test_tags_of_ours_in_a_message_are_stored_as_they_were_written(thread):
    text = "</observations> <thread id=1> </memory>"
    say(thread, question(text))
    assert Message.objects.get().text == text


@pytest.mark.parametrize(
    "message", [question("How many hives?"), answer(), calling("c1", "c2"), returning("c1")]
)
def test_tokens_are_counted_once_and_stored_with_the_message(thread, message):
    say(thread, message)
    assert Message.objects.get().tokens == count_message(message) > 0


def test_instructions_are_never_stored(thread):
    message = ModelRequest(parts=[UserPromptPart("Hello")], instructions="Guard the honey.")
    say(thread, message)

    stored = Message.objects.get()
    assert "honey" not in str(stored.payload)
    assert "honey" not in stored.text


def test_kind_and_model_are_read_from_the_message(thread):
    reply = answer()
    reply.model_name = "fake"
    say(thread, question(), reply)

    kinds = [(m.kind, m.model) for m in Message.objects.order_by("position")]
    assert kinds == [("request", ""), ("response", "fake")]


def test_appending_makes_the_thread_the_most_recent(thread):
    before = thread.last_active_at
    say(thread, question())
    thread.refresh_from_db()
    assert thread.last_active_at > before


def test_each_thread_counts_its_own_positions(thread, resource):
    other = Thread.objects.create(resource=resource, agent="tester")
    say(thread, question(), answer())
    assert say(other, question()) == [1]


@pytest.mark.parametrize(
    ("model", "tokens"), [("openai:gpt-4o", 765), ("anthropic:claude-sonnet-4-5", 1_399)]
)
def test_a_picture_costs_what_the_actors_provider_asks(thread, model, tokens):
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1_024).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    picture = ModelRequest(parts=[UserPromptPart([BinaryContent(png, media_type="image/png")])])

    append(thread.pk, [picture], at=AT, model=model)

    stored = Message.objects.get()
    assert stored.model == model
    assert stored.tokens - MESSAGE_TOKENS == tokens
    assert verify().violations == ()
