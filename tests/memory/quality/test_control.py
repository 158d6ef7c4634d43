from hypothesis import given
from hypothesis import strategies as st

from memory.quality import score, shuffled
from tests.memory.quality.cases import WHAT, WHEN, Ask, line, remembered


def questions_of(conversations):
    return [[(q.text, q.answer) for q in c.questions] for c in conversations]


def test_answers_go_to_other_questions_of_their_category():
    asked = [Ask(f"What is {n}?", f"answer {n}", (), category=str(n % 2)) for n in range(10)]
    (dealt,) = shuffled([remembered(questions=asked)])
    assert [q.text for q in dealt.questions] == [q.text for q in asked]
    for question, given_to in zip(asked, dealt.questions, strict=True):
        assert given_to.answer != question.answer
        assert int(given_to.answer.split()[1]) % 2 == int(question.category)


def test_single_questions_swap_with_those_of_other_conversations():
    one, other = remembered(questions=[WHAT]), remembered(questions=[WHEN])
    assert questions_of(shuffled([one, other])) == [
        [(WHAT.text, WHEN.answer)],
        [(WHEN.text, WHAT.answer)],
    ]


def test_a_question_that_is_alone_is_left_out():
    assert questions_of(shuffled([remembered(questions=[WHAT])])) == [[]]


def test_unanswerable_questions_take_no_part():
    asked = [WHAT, WHEN, Ask("What did Piet paint?", "", ("A:1",))]
    (dealt,) = shuffled([remembered(questions=asked)])
    assert [q.answer for q in dealt.questions] == [WHEN.answer, WHAT.answer]


def test_a_memory_that_knows_everything_knows_nothing_of_dealt_answers():
    lines = [
        line("Nora adopted Biscuit on 3 May 2023", "A:0"),
        line("Piet grows leeks and beetroot", "A:1"),
        line("Biscuit chewed the violin case", "B:0"),
    ]
    chewed = Ask("What did Biscuit chew?", "the violin case", ("B:0",))
    full = remembered(*lines, questions=[WHAT, chewed])
    assert score([full]).support == 100
    assert score(shuffled([full])).support == 0


@given(st.lists(st.lists(st.sampled_from("123"), max_size=6), max_size=4), st.integers())
def test_no_answer_is_doubled_or_left_in_place(categories, seed):
    conversations = [
        remembered(questions=[Ask(f"{n}.{m}", f"{n}.{m}", (), c) for m, c in enumerate(of_one)])
        for n, of_one in enumerate(categories)
    ]
    dealt = [q for c in shuffled(conversations, seed=seed) for q in c.questions]
    assert len({q.answer for q in dealt}) == len(dealt)
    assert all(q.answer != q.text for q in dealt)
