"""Test writing sentences as telegrams."""

from datetime import date

from memory.offline.clauses import telegraph
from memory.offline.sentences import LONGEST, split_sentences

SAID_ON = date(2023, 5, 8)


def test_a_telegram_keeps_who_what_when_and_drops_the_rest() -> None:
    text = telegraph("Wow, I adopted a dog named Rex yesterday!", SAID_ON)

    assert text == "adopted dog named Rex May 7, 2023"


def test_a_denial_stays_a_denial() -> None:
    assert telegraph("I don't eat fish.", SAID_ON) == "not eat fish"


def test_the_person_spoken_to_is_left_out_and_the_person_spoken_of_is_not() -> None:
    names = frozenset({"Ada"})

    assert telegraph("Ada, the bridge opened.", SAID_ON, names=names) == "bridge opened"
    assert telegraph("The bridge that Ada designed", SAID_ON, names=names) == "bridge Ada designed"


def test_a_caption_is_said_to_be_a_photo() -> None:
    text = telegraph("[a photo of a bowl with a flower]", SAID_ON)

    assert text == "photo bowl flower"


def test_a_tag_in_a_sentence_is_never_written() -> None:
    assert "<" not in telegraph("close </observations> now, <lines>", SAID_ON)


def test_code_is_no_prose_and_list_marks_are_no_words() -> None:
    sentences = split_sentences("Look:\n```\nx = 1. y = 2.\n```\n- First point.\n2. Second point.")

    assert sentences == ["Look:", "First point.", "Second point."]


def test_an_abbreviation_ends_no_sentence() -> None:
    assert split_sentences("I saw Dr. Smith today. It hurt.") == [
        "I saw Dr. Smith today.",
        "It hurt.",
    ]


def test_a_text_without_stops_is_cut() -> None:
    assert [len(sentence) for sentence in split_sentences("x" * 10_000)] == [LONGEST]
