from hypothesis import given
from hypothesis import strategies as st

from memory.engine.cuts import Pending, coverable, keeping, legal_cuts
from memory.engine.values import MessageKind

REQUEST, RESPONSE = MessageKind.REQUEST, MessageKind.RESPONSE


def prompt(position, tokens=10):
    return Pending(position, REQUEST, tokens)


def answer(position, tokens=10):
    return Pending(position, RESPONSE, tokens)


def call(position, *ids, tokens=10):
    return Pending(position, RESPONSE, tokens, calls=frozenset(ids))


def result(position, *ids, tokens=10):
    return Pending(position, REQUEST, tokens, returns=frozenset(ids))


def test_a_cut_falls_after_an_answer():
    assert legal_cuts([prompt(1), answer(2), prompt(3)]) == [1]


def test_a_lone_prompt_cannot_be_cut_off():
    assert legal_cuts([prompt(1)]) == []


def test_a_prompt_that_was_never_answered_can_be_cut_off_from_the_next():
    assert legal_cuts([prompt(1), prompt(2), answer(3)]) == [0, 2]


def test_no_cut_separates_a_call_from_its_result():
    assert legal_cuts([prompt(1), call(2, "a"), result(3, "a"), answer(4)]) == [2, 3]


def test_no_cut_falls_while_one_of_several_calls_is_open():
    messages = [prompt(1), call(2, "a", "b"), result(3, "a"), result(4, "b")]

    assert legal_cuts(messages) == [3]


def test_an_open_call_at_the_end_keeps_all_after_it_together():
    assert legal_cuts([prompt(1), answer(2), prompt(3), call(4, "a")]) == [1]


def test_what_can_be_covered_stays_within_the_limit():
    messages = [prompt(1), answer(2), prompt(3), answer(4)]

    assert [m.position for m in coverable(messages, limit=25)] == [1, 2]


def test_a_step_larger_than_the_limit_is_covered_whole():
    messages = [prompt(1, 500), answer(2, 500), prompt(3), answer(4)]

    assert [m.position for m in coverable(messages, limit=100)] == [1, 2]


def test_where_no_cut_is_legal_nothing_can_be_covered():
    assert not coverable([prompt(1, 50_000)], limit=100)
    assert not keeping([prompt(1, 50_000)], floor=10)


def test_the_floor_is_kept_when_a_cut_allows_it():
    messages = [prompt(1), answer(2), prompt(3), answer(4), prompt(5)]

    assert [m.position for m in keeping(messages, floor=30)] == [1, 2]


def test_the_shortest_prefix_is_taken_when_no_cut_keeps_the_floor():
    messages = [prompt(1), answer(2), prompt(3), answer(4)]

    assert [m.position for m in keeping(messages, floor=1_000)] == [1, 2]


@st.composite
def transcripts(draw):
    """Turns of prompts, tool loops and answers, some left open at the end."""
    messages, position = [], 0

    def add(kind, **ids):
        nonlocal position
        position += draw(st.integers(1, 3))
        messages.append(Pending(position, kind, draw(st.integers(0, 400)), **ids))

    for turn in range(draw(st.integers(0, 6))):
        add(REQUEST)
        for step in range(draw(st.integers(0, 3))):
            ids = frozenset(f"{turn}.{step}.{n}" for n in range(draw(st.integers(1, 3))))
            add(RESPONSE, calls=ids)
            add(REQUEST, returns=ids)
        if draw(st.booleans()):
            add(RESPONSE)
    drop = draw(st.integers(0, 2))
    return messages[: len(messages) - drop]


@given(transcripts(), st.integers(1, 3_000))
def test_no_covered_prefix_ever_splits_a_pair(messages, limit):
    for covered in (coverable(messages, limit=limit), keeping(messages, floor=limit)):
        calls = frozenset().union(*(m.calls for m in covered))
        returns = frozenset().union(*(m.returns for m in covered))
        assert calls == returns
        assert list(covered) == messages[: len(covered)]
