import pytest

from memory.models import Message
from memory.services.kept import Raw
from memory.services.request import Prepared, text_block
from memory.services.tail import message_block

from .play import answer, question, say

pytestmark = pytest.mark.django_db


def raws(thread):
    return [Raw(row) for row in Message.objects.filter(thread=thread).order_by("position")]


def test_a_run_of_stored_messages_is_one_entry(thread):
    say(thread, question(), answer(), question())

    summary = Prepared(tuple(message_block("message", raw) for raw in raws(thread))).summary()

    assert [(entry["first"], entry["last"]) for entry in summary] == [(1, 3)]


def test_a_run_ends_where_a_message_is_not_sent(thread):
    say(thread, *[question(), answer()] * 3)
    sent = [raw for raw in raws(thread) if raw.position not in (2, 3)]

    summary = Prepared(tuple(message_block("prompt", raw) for raw in sent)).summary()

    assert [(entry["first"], entry["last"]) for entry in summary] == [(1, 1), (4, 6)]
    assert sum(entry["tokens"] for entry in summary) == sum(raw.tokens for raw in sent)


def test_a_text_is_named_by_its_hash(thread):
    say(thread, question())
    block = text_block("reminder", "<reminder>Go on.</reminder>", 5, source="hints")
    blocks = (block, *(message_block("prompt", raw) for raw in raws(thread)))

    summary = Prepared(blocks).summary()

    assert [entry.get("hash") for entry in summary] == [block.hash, None]
