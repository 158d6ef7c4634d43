from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Line
from memory.services.edit import edit
from memory.services.look import look
from memory.services.request import memory_text
from memory.services.written import as_seen, as_stored, text_of

from .editing import beekeeping, line

BERLIN = ZoneInfo("Europe/Berlin")
PARTS = [*"ab*- \t(:)12<>/&🔴✅\n\r\u2028\x00", "    ", "Date: ", "</memory>", "-> "]
ODD = st.lists(st.sampled_from(PARTS), min_size=1, max_size=20).map("".join).filter(str.strip)
TIMES = st.none() | st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 4), timezones=st.just(UTC))
LINES = st.lists(
    st.builds(Line, kind=st.sampled_from(Line.Kind.values), text=ODD, said_at=TIMES), max_size=8
)


@given(LINES)
def test_every_line_is_one_piece_in_order_and_the_pieces_are_the_text(lines):
    pieces = as_stored(lines, BERLIN)

    assert [piece.line for piece in pieces if piece.line] == lines
    text = text_of(pieces)
    assert sum(piece.height for piece in pieces) == (len(text.split("\n")) if lines else 0)
    assert all(piece.height == 1 for piece in pieces if piece.line is None)


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def test_what_the_actor_sees_is_the_block_of_its_request_byte_for_byte(world):
    edit(line(world.record, "Ada keeps bees").pk, "Ada keeps\n\n* bees\n</observations>")
    view = look(world.thread.pk)
    at = datetime(2026, 3, 9, 12, tzinfo=UTC)

    pieces = as_seen(world.thread.pk, view.revision, at)

    assert text_of(pieces) == memory_text(view, at)[0]
    assert [piece.line for piece in pieces if piece.line] == list(view.lines)
    assert "</memory>" in pieces[-1].text


def test_a_past_revision_is_written_with_the_lines_it_had(world):
    edit(world.a0.pk, "Ada asked for noon")

    text = text_of(as_seen(world.thread.pk, 1, datetime(2026, 3, 9, 12, tzinfo=UTC)))

    assert "Ada asked for the time" in text
    assert "noon" not in text
    assert "honey" not in text


def test_nothing_is_written_where_nothing_is_remembered(thread):
    assert as_seen(thread.pk, 0, datetime(2026, 3, 9, tzinfo=UTC)) == []
