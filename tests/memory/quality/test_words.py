from memory.quality.words import stems, words


def test_words_that_mean_nothing_are_left_out():
    assert stems("She has been to the opera") == ["opera"]


def test_forms_of_a_word_have_one_stem():
    assert stems("painting paints painted") == ["paint"] * 3


def test_numerals_are_numbers():
    assert stems("three tents, 3 tents") == ["3", "tent", "3", "tent"]


def test_a_number_keeps_what_stands_inside_it():
    assert words("at 10:30 for 1,250.50 euros.") == ["at", "10:30", "for", "1,250.50", "euros"]


def test_a_genitive_is_its_noun():
    assert stems("Mara’s oven") == stems("Mara oven")


def test_scripts_without_spaces_are_read_by_twos():
    assert stems("我爱北京") == ["我爱", "爱北", "北京"]


def test_a_text_without_words_has_no_stems():
    assert stems(" … !? ") == []
