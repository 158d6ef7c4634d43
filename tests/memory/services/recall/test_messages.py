import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.engine.recalled import BUDGET
from memory.messages import load, plain_text
from memory.models import Message, Thread
from memory.services.blank import blank
from memory.services.look import record_of
from memory.services.recall import Refused
from memory.services.recall.pages import SCANNED
from memory.tokens import count
from tests.memory.services.play import answer, calling, question, returning, say, words

from .play import ask, saying_and_calling, shown, thinking

pytestmark = pytest.mark.django_db


@pytest.fixture
def talked(thread):
    """Say ten messages; 3 and 8 hold only thinking."""
    for number in range(1, 11):
        if number in (3, 8):
            say(thread, thinking())
        else:
            say(
                thread, question(f"Question {number}") if number % 2 else answer(f"Answer {number}")
            )
    return thread


@pytest.mark.parametrize(
    ("asked", "positions", "around"),
    [
        ({}, [1, 2, 4, 5, 6, 7, 9, 10], ""),
        ({"limit": 3}, [1, 2, 4], "a"),
        ({"limit": 3, "page": 0}, [1, 2, 4], "a"),
        ({"limit": 3, "page": 2}, [5, 6, 7], "ba"),
        ({"limit": 3, "page": 3}, [9, 10], "b"),
        ({"limit": 3, "anchor": "end"}, [7, 9, 10], "b"),
        ({"limit": 3, "anchor": "end", "page": 2}, [4, 5, 6], "ba"),
        ({"limit": 3, "anchor": "end", "page": 3}, [1, 2], "a"),
        ({"cursor": 4, "limit": 2}, [5, 6], "ba"),
        ({"cursor": 4, "limit": 2, "page": 0}, [5, 6], "ba"),
        ({"cursor": 4, "limit": 2, "page": 2}, [7, 9], "ba"),
        ({"cursor": 4, "page": -1}, [1, 2], "a"),
        ({"cursor": 9, "limit": 2, "page": -1}, [6, 7], "ba"),
        ({"cursor": 9, "limit": 2, "page": -2}, [4, 5], "ba"),
        ({"cursor": 3, "limit": 2}, [4, 5], "ba"),
        ({"cursor": 8, "limit": 2, "page": -1}, [6, 7], "ba"),
        ({"first": 2, "last": 5}, [2, 4, 5], ""),
        ({"first": 5, "last": 2}, [2, 4, 5], ""),
        ({"first": 2, "last": 7, "limit": 2}, [2, 4], "a"),
        ({"first": 2, "last": 7, "limit": 2, "cursor": 4}, [5, 6], "ba"),
        ({"first": 2, "last": 7, "limit": 2, "anchor": "end"}, [6, 7], "b"),
        ({"first": 6}, [6], ""),
        ({"last": 6}, [6], ""),
        ({"first": 9, "last": 999}, [9, 10], ""),
        ({"limit": 1, "detail": "high"}, [1], "a"),
    ],
)
def test_a_page_holds_what_lies_on_its_side_in_order(talked, asked, positions, around):
    told = ask(talked, **asked)
    assert shown(told) == positions
    if asked.get("detail") != "high":
        assert ("more before" in told, "more after" in told) == ("b" in around, "a" in around)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"cursor": 10}, "(There is nothing to show on this page.)"),
        ({"cursor": 1, "page": -1}, "(There is nothing to show on this page.)"),
        ({"page": 9}, "(There is nothing to show on this page.)"),
        ({"first": 3}, "(There is nothing to show on this page.)"),
        ({"tool": "paint"}, "(No part of these messages is of that part_kind and tool.)"),
        ({"part_kind": "attachment"}, "(No part of these messages is of that part_kind and tool.)"),
    ],
)
def test_an_empty_page_says_why(talked, asked, told):
    assert told in ask(talked, **asked)


def test_a_conversation_without_messages_says_so(thread):
    assert "(There are no messages in this conversation yet.)" in ask(thread)
    assert "no messages" in ask(thread, cursor=7, part=2)


@pytest.mark.parametrize("asked", [{"cursor": 11}, {"cursor": 0}, {"first": 11, "last": 12}])
def test_a_position_outside_the_conversation_is_refused(talked, asked):
    with pytest.raises(Refused, match="outside this conversation"):
        ask(talked, **asked)


def test_each_message_has_its_time_in_the_users_zone(talked):
    assert "[1] User (2026-03-02 10:00): Question 1" in ask(talked)
    assert "[2] Assistant (2026-03-02 10:00): Answer 2" in ask(talked)


def erase(thread, *positions):
    """Leave of messages what erasing leaves."""
    for row in Message.objects.filter(thread=thread, position__in=positions):
        row.payload = blank(row.payload, row.created_at)
        row.text = plain_text(load(row.payload))
        row.save()


def test_an_erased_message_takes_no_place_on_a_page(talked):
    erase(talked, 2, 5)
    assert shown(ask(talked, limit=2)) == [1, 4]
    assert shown(ask(talked, cursor=6, page=-1, limit=2)) == [1, 4]
    assert shown(ask(talked, query="erased answer")) == [4, 6, 10]
    assert "Message 2 has nothing to show" in ask(talked, cursor=2, part=1)


def test_the_tools_of_an_erased_message_are_not_shown(searched):
    erase(searched, 2, 3)
    assert shown(ask(searched)) == [1, 5, 6, 7]
    assert shown(ask(searched, part_kind="call")) == [5]
    assert shown(ask(searched, query="search erased")) == []


@pytest.fixture
def searched(thread):
    """Say a question, three calls with results, and an answer."""
    say(
        thread,
        question("Where is the hive?"),
        saying_and_calling("I will look.", "c1", "c2"),
        returning("c1", "c2", text="A hive on the roof."),
        thinking(),
        calling("c3", tool="fetch"),
        returning("c3", tool="fetch", text="No roof.", outcome="failed"),
        answer("On the roof."),
    )
    return thread


@pytest.mark.parametrize(
    ("asked", "positions", "texts"),
    [
        ({"part_kind": "user"}, [1], ["Where is the hive?"]),
        ({"part_kind": "text"}, [2, 7], ["(1) I will look.", "On the roof."]),
        ({"part_kind": "call"}, [2, 5], ["(2) called search", "(3) called search", "called fetch"]),
        (
            {"part_kind": "result"},
            [3, 6],
            ["(2) search returned:", "fetch failed: No roof."],
        ),
        ({"tool": "FETCH"}, [5, 6], ["called fetch", "fetch failed"]),
        ({"tool": "search", "part_kind": "result"}, [3], ["search returned: A hive on the roof."]),
        ({"part_kind": "call", "limit": 1}, [2], ["more after"]),
        ({"part_kind": "call", "limit": 1, "page": 2}, [5], ["more before"]),
        ({"part_kind": "call", "limit": 1, "anchor": "end"}, [5], ["more before"]),
        ({"part_kind": "call", "cursor": 5, "page": -1}, [2], ["called search"]),
    ],
)
def test_filters_choose_parts_and_only_messages_that_have_them(searched, asked, positions, texts):
    told = ask(searched, **asked)
    assert shown(told) == positions
    assert all(text in told for text in texts)


def test_a_search_for_parts_ends_and_can_be_taken_up(thread):
    say(thread, *[question("Hello") for _ in range(SCANNED)], calling("c1"))
    told = ask(thread, part_kind="call")
    assert f"Only {SCANNED} messages were looked through, to position {SCANNED}." in told
    assert shown(told) == []
    assert shown(ask(thread, part_kind="call", cursor=SCANNED)) == [SCANNED + 1]
    assert shown(ask(thread, part_kind="user", anchor="end", limit=1)) == [SCANNED]


def test_high_detail_shows_one_part_and_leads_through_all_of_them(searched):
    told, seen = ask(searched, detail="high"), []
    while True:
        head, _, text = told.partition("\n\n")
        seen.append(text)
        if "Next part" in head:
            where = head.rsplit("cursor=", 1)[1].rstrip(".").split(", part=")
            told = ask(searched, cursor=int(where[0]), part=int(where[1]))
        elif "Next message" in head:
            told = ask(searched, cursor=int(shown(head)[0]), page=1, detail="high")
        else:
            break
    assert seen == [
        "Where is the hive?",
        "I will look.",
        '{"query":"hive"}',
        '{"query":"hive"}',
        "A hive on the roof.",
        "A hive on the roof.",
        '{"query":"hive"}',
        "No roof.",
        "On the roof.",
    ]


def test_a_part_is_shown_in_full_by_its_number(searched):
    told = ask(searched, cursor=3, part=2)
    assert "[3] Tools (2026-03-02 10:00), part 2 of 2: search returned:" in told
    assert told.endswith("\n\nA hive on the roof.")
    assert ask(searched, first=3, part=2) == told


def test_a_long_part_is_continued_by_its_offset(thread):
    text = "".join(f"line {n}\n" for n in range(3_000))
    say(thread, question(text))
    read, told = "", ask(thread, cursor=1, part=1)
    while "To go on: cursor=1, part=1, offset=" in told:
        assert count(told) <= BUDGET
        read += told.partition("\n\n")[2]
        told = ask(thread, cursor=1, offset=len(read))
    assert read + told.partition("\n\n")[2] == text


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ({"cursor": 3, "part": 3}, "Message 3 has 2 parts; this is the next one."),
        ({"cursor": 4, "part": 1}, "Message 4 has nothing to show; this is the next one."),
        ({"cursor": 1, "part": 9, "part_kind": "call"}, "Message 1 has one part;"),
    ],
)
def test_behind_the_last_part_comes_the_next_message(searched, asked, note):
    told = ask(searched, **asked)
    assert note in told
    assert "part 1 of" in told or "part 2 of" in told


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"cursor": 7, "part": 2}, "Message 7 has no part 2. The parts there are: 1."),
        ({"cursor": 3, "part": 0}, "Message 3 has no part 0. The parts there are: 1, 2."),
        ({"cursor": 2, "part": 1, "part_kind": "call"}, "The parts there are: 2, 3."),
        ({"cursor": 2, "part": 1, "tool": "fetch"}, "Leave part_kind and tool out."),
        ({"part": 1}, "part and offset need a message: give its position as cursor."),
        ({"offset": 4}, "part and offset need a message"),
        ({"cursor": 7, "part": 1, "offset": 12}, "has 12 characters"),
        ({"cursor": 8, "part": 1}, "outside this conversation"),
    ],
)
def test_a_part_that_is_not_there_is_refused_with_those_that_are(searched, asked, sentence):
    with pytest.raises(Refused) as refused:
        ask(searched, **asked)
    assert sentence in str(refused.value)


def test_nothing_after_an_empty_message_is_refused(thread):
    say(thread, question("Hello"), thinking())
    with pytest.raises(Refused, match="Message 2 has nothing to show, and nothing follows it"):
        ask(thread, cursor=2, part=1)


def test_a_surrogate_pair_is_never_split(thread):
    say(thread, question("🐝" * 20_000))
    for told in (ask(thread), ask(thread, cursor=1, part=1), ask(thread, query="🐝🐝🐝")):
        told.encode()
        assert count(told) <= BUDGET


KINDS_SAID = st.lists(st.sampled_from(["user", "text", "thinking", "call"]), max_size=40)


def said_as(kind, number):
    made = {"user": question, "text": answer, "thinking": thinking}
    return calling(f"c{number}") if kind == "call" else made[kind](f"Number {number}")


def walk(thread, **asked):
    """Return the pages from one end to the other, following the cursors told."""
    forward = asked.get("anchor") != "end"
    pages, told = [], ask(thread, **asked)
    while True:
        assert count(told) <= BUDGET
        pages.append(shown(told))
        if ("more after" if forward else "more before") not in told:
            return pages
        told = ask(
            thread,
            **{**asked, "cursor": pages[-1][-1 if forward else 0], "page": 1 if forward else -1},
        )


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(kinds=KINDS_SAID, limit=st.integers(1, 20), part_kind=st.sampled_from(["any", "call"]))
def test_walking_from_either_end_meets_every_message_once_in_order(
    resource, kinds, limit, part_kind
):
    thread = Thread.objects.create(resource=resource, agent="tester")
    say(thread, *[said_as(kind, number) for number, kind in enumerate(kinds, 1)])
    wanted = [
        position
        for position, kind in enumerate(kinds, 1)
        if (kind == "call" if part_kind == "call" else kind != "thinking")
    ]
    there = walk(thread, limit=limit, part_kind=part_kind)
    back = walk(thread, limit=limit, part_kind=part_kind, anchor="end")
    assert [position for page in there for position in page] == wanted
    assert [position for page in back[::-1] for position in page] == wanted
    assert all(len(page) == limit for page in (*there[:-1], *back[:-1]))
    pages = range(1, len(there) + 1)
    counted = [shown(ask(thread, limit=limit, part_kind=part_kind, page=n)) for n in pages]
    assert counted == there


def test_a_page_costs_the_same_few_statements_wherever_it_lies(thread):
    say(thread, *[question(f"{number} {words(20)}") for number in range(1, 301)])

    def statements(**asked):
        with CaptureQueriesContext(connection) as captured:
            ask(thread, **asked)
        return len(captured)

    record_of(thread)
    costs = {
        statements(limit=20),
        statements(cursor=150),
        statements(cursor=300, page=-10),
        statements(anchor="end", page=7),
    }
    assert max(costs) <= 5
