import pytest

from memory.quality import MemoryLine, Turn, score
from tests.memory.quality.cases import (
    MAY_4,
    MAY_9,
    TURNS,
    WHAT,
    WHEN,
    Ask,
    line,
    remembered,
)

SOLD = Ask("When did Piet sell the motorbike?", "The week before 9 May 2023", ("B:1",))


def test_an_answer_counts_by_the_part_of_it_that_is_kept():
    kept = score([remembered(line("Piet grows leeks", "A:1"), questions=[WHAT])])
    assert kept.support == 50
    assert kept.questions == 1


def test_a_line_that_rests_on_other_turns_supports_nothing():
    kept = score([remembered(line("leeks and beetroot", "B:1"), questions=[WHAT])])
    assert kept.support == 0


def test_lines_together_support_an_answer():
    lines = [line("leeks", "A:1"), line("beetroot", "A:1")]
    assert score([remembered(*lines, questions=[WHAT])]).support == 100


def test_a_date_is_supported_by_reckoning_but_not_printed():
    kept = score([remembered(line("Nora adopted Biscuit yesterday", "A:0"), questions=[WHEN])])
    assert (kept.support, kept.explicit, kept.dated) == (100, 0, 1)


@pytest.mark.parametrize("date", ["on 3 May 2023", "on May 3", "2023-05-03"])
def test_a_printed_date_is_explicit(date):
    kept = score([remembered(line(f"Nora adopted Biscuit {date}", "A:0"), questions=[WHEN])])
    assert (kept.support, kept.explicit) == (100, 100)


def test_a_line_without_a_date_says_that_of_its_heading():
    kept = score([remembered(line("Nora adopted Biscuit", "A:0"), questions=[WHEN])])
    assert (kept.support, kept.explicit) == (100, 100)


def test_a_wrong_date_is_no_support():
    lines = [line("Nora adopted Biscuit on 23 April 2023", "A:0")]
    kept = score([remembered(*lines, questions=[WHEN])])
    assert (kept.support, kept.explicit) == (0, 0)


def test_a_span_that_is_too_wide_is_no_support():
    kept = score([remembered(line("Biscuit came in 2023", "A:0"), questions=[WHEN])])
    assert kept.support == 0


def test_what_a_line_adds_to_its_turns_is_not_grounded():
    kept = score([remembered(line("Piet: leeks, beetroot, gooseberries, plums", "A:1"))])
    assert kept.grounded == 50


def test_dates_and_names_need_no_ground():
    text = "Nora adopted the greyhound Biscuit on 3 May 2023"
    assert score([remembered(line(text, "A:0"))]).grounded == 100


def long_talk():
    """Return the turns with nine more in which hardly anything is said."""
    return [*TURNS, *(Turn(f"C:{n}", "Nora", "Yes.", MAY_9, "C") for n in range(9))]


def test_a_line_that_cites_everything_proves_nothing():
    turns = long_talk()
    boast = MemoryLine("leeks and beetroot", MAY_9, frozenset(turn.id for turn in turns))
    elsewhere = Ask("What did Nora say?", "leeks", ("C:1",))
    kept = score([remembered(boast, questions=[elsewhere], turns=turns)])
    assert (kept.support, kept.grounded, kept.cited) == (0, None, 13)


@pytest.mark.parametrize(
    ("text", "support"), [("the allotment grows leeks", 50), ("leeks for supper", 0)]
)
def test_a_line_that_cites_too_much_must_be_of_the_sitting_and_to_the_point(text, support):
    turns = long_talk()
    vague = MemoryLine(text, MAY_4, frozenset(turn.id for turn in turns))
    kept = score([remembered(vague, questions=[WHAT], turns=turns)])
    assert kept.support == support


def test_a_line_that_cites_nothing_supports_nothing():
    kept = score([remembered(line("the allotment grows leeks and beetroot"), questions=[WHAT])])
    assert kept.support == 0


def test_all_questions_of_all_conversations_count_the_same():
    full = remembered(line("leeks and beetroot", "A:1"), questions=[WHAT])
    empty = remembered(questions=[WHAT, WHAT, WHAT])
    assert score([full, empty]).support == 25


def test_the_median_of_what_lines_cite_is_that_of_a_line():
    lines = [line("a", "A:0"), line("b", "A:0", "A:1"), line("c", "A:0"), line("d", "A:0", "B:0")]
    assert score([remembered(*lines)]).cited == 1


def test_the_ratio_is_of_all_that_was_said_to_all_that_is_left():
    kept = score([remembered(line("Nora: Biscuit", "A:0"), line("Inge", "B:1", on=MAY_9))])
    assert kept.ratio == pytest.approx(kept.raw_tokens / kept.memory_tokens)
    assert kept.memory_tokens == (4 + 2) + (2 + 1 - 1) + 2 * 7
    assert kept.raw_tokens > 2 * kept.memory_tokens


def test_without_lines_there_is_nothing_to_compare():
    kept = score([remembered()])
    assert (kept.support, kept.grounded, kept.cited, kept.ratio) == (0, None, None, None)


def test_without_questions_only_the_lines_are_measured():
    kept = score([remembered(line("leeks", "A:1"), questions=[])])
    assert (kept.support, kept.explicit, kept.grounded) == (None, None, 100)


def test_no_conversation_has_no_score():
    kept = score([])
    assert (kept.support, kept.questions, kept.raw_tokens, kept.ratio) == (None, 0, 0, None)


def test_what_has_no_answer_is_not_asked():
    kept = score([remembered(questions=[Ask("What did Piet paint?", "", ("A:1",)), WHAT])])
    assert kept.questions == 1


def test_a_week_is_told_by_a_day_in_it():
    kept = score([remembered(line("motorbike sold 3 May 2023", "B:1"), questions=[SOLD])])
    assert kept.support == 100
