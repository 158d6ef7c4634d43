from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.listing import Listing
from memory.engine.parsing import BadOutput, UnparsableOutput, parse_observer
from memory.engine.values import Line, LineKind, WrittenLine
from tests.memory.engine.replies import DONE, PLAIN, block, observed


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_any_reply_is_read_or_named(reply: str) -> None:
    try:
        lines = observed(reply).lines
    except BadOutput:
        return

    assert all(line.text.strip() for line in lines)
    assert all(set(line.cites) <= set(range(1, 10)) for line in lines)
    assert all(line.text.encode() for line in lines)


WORDS = st.text("abc ,.<>/[]#1-", min_size=1, max_size=30).map(str.strip).map(lambda t: f"a{t}b")
LINES = st.builds(
    WrittenLine,
    kind=st.sampled_from(LineKind),
    text=WORDS | st.builds("{}\n{}".format, WORDS, WORDS),
    said_at=st.none()
    | st.datetimes(datetime(2020, 1, 1), datetime(2025, 1, 1)).map(
        lambda t: t.replace(second=0, microsecond=0, tzinfo=UTC)
    ),
    cites=st.lists(st.integers(1, 9), unique=True, max_size=3).map(sorted).map(tuple),
)


SUB_POINTS = st.lists(
    st.builds(
        lambda kind, text, cites: WrittenLine(kind, f"-> {text}", None, cites),
        st.sampled_from([PLAIN, DONE]),
        WORDS,
        st.just((1,)) | st.just(()),
    ),
    max_size=2,
)


@given(st.lists(st.tuples(LINES, SUB_POINTS), min_size=1, max_size=6))
def test_lines_survive_being_written_and_read(
    groups: list[tuple[WrittenLine, list[WrittenLine]]],
) -> None:
    lines = [
        line
        for parent, points in groups
        for line in (
            parent,
            *(WrittenLine(p.kind, p.text, parent.said_at, p.cites) for p in points),
        )
    ]
    listing = Listing(UTC)
    for number, line in enumerate(lines):
        stored = Line(number, 1, line.kind, line.text, 1, line.said_at)
        listing.add(stored, cite=f"[#{','.join(map(str, line.cites))}]" if line.cites else "")

    # A line equal to the one before it is a model repeating itself.
    assert list(observed(block(listing.text)).lines) == [line for line, _ in groupby(lines)]


def test_a_line_said_twice_in_one_reply_counts_once() -> None:
    reply = "<observations>\n* 🔴 Rex is a dog [#1]\n* 🔴 Rex is a dog [#1]\n</observations>"

    assert len(parse_observer(reply, tz=UTC, known={1}).lines) == 1


def test_a_list_without_tags_marks_dates_or_sources_is_no_list_of_observations() -> None:
    with pytest.raises(UnparsableOutput, match="nothing that marks it"):
        parse_observer("- buy milk\n- call the plumber", tz=UTC, known={1})
