from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.engine.shorten import LANDMARKS, Tokenizer, condense, condense_all, shares, truncate


def condensed_to(text: str, limit: int, tokenizer: Tokenizer) -> str:
    return condense(text, limit, tokenizer.count(text), tokenizer)


class NeverAsked:
    """Fail when anything is counted."""

    def count(self, text: str) -> int:
        raise AssertionError("counted")

    def clip(self, text: str, limit: int) -> str:
        raise AssertionError("clipped")


def test_a_text_of_fewer_bytes_than_tokens_allowed_is_not_counted() -> None:
    assert truncate("a" * 100, 100, NeverAsked()) == "a" * 100
    assert condense_all(["a" * 50, "b" * 49], 100, NeverAsked()) == ["a" * 50, "b" * 49]


def test_texts_that_fit_together_stay(tokenizer: Tokenizer) -> None:
    assert condense_all(["a" * 200, "b" * 200], 100, tokenizer) == ["a" * 200, "b" * 200]


def test_of_several_texts_only_the_long_ones_are_condensed(tokenizer: Tokenizer) -> None:
    short, long = condense_all(["a" * 200, "b" * 4000], 300, tokenizer)

    assert short == "a" * 200
    assert "tokens left out" in long
    assert tokenizer.count(long) <= 250


def test_only_the_beginning_of_a_long_text_is_clipped() -> None:
    class Clipped:
        def count(self, text: str) -> int:
            return len(text)

        def clip(self, text: str, limit: int) -> str:
            assert len(text) <= limit * 16
            return text[:limit]

    assert truncate("a" * 1000, 10, Clipped()) == "a" * 10 + "… [truncated, 1000 tokens in all]"


def test_a_truncated_text_says_how_much_there_was(tokenizer: Tokenizer) -> None:
    assert truncate("abcd" * 10, 3, tokenizer) == "abcdabcdabcd… [truncated, 10 tokens in all]"


def test_a_text_within_the_limit_is_not_truncated(tokenizer: Tokenizer) -> None:
    assert truncate("abcd" * 3, 3, tokenizer) == "abcdabcdabcd"


def test_a_condensed_text_keeps_both_ends_and_outlines_the_middle(tokenizer: Tokenizer) -> None:
    text = "\n".join(f"line {number}: " + "word " * 20 for number in range(1, 500))

    condensed = condensed_to(text, 1000, tokenizer)

    assert condensed.startswith("line 1: ")
    assert condensed.endswith("word") or condensed.endswith("word ")
    assert "line 499: " in condensed
    assert "tokens left out, among them:\n- line " in condensed
    assert tokenizer.count(condensed) <= 1000


def test_the_outline_prefers_headings(tokenizer: Tokenizer) -> None:
    chapters = [f"# Chapter {n}\n" + "\n".join(["plain text " * 9] * 60) for n in range(1, 5)]

    condensed = condensed_to("\n".join(chapters), 2000, tokenizer)

    assert "\n- # Chapter 2\n- # Chapter 3\n" in condensed


def test_a_text_in_one_line_is_outlined_by_its_sentences(tokenizer: Tokenizer) -> None:
    text = " ".join(f"Sentence {number} says something of its own." for number in range(3000))

    condensed = condensed_to(text, 2000, tokenizer)

    assert condensed.count("\n- Sentence") in range(4, LANDMARKS + 1)


def test_little_room_leaves_only_the_beginning(tokenizer: Tokenizer) -> None:
    condensed = condensed_to("abcd" * 1000, 50, tokenizer)

    assert condensed == "abcd" * 34 + "… [truncated, 1000 tokens in all]"


class Bytes:
    """Count every byte as a token."""

    def count(self, text: str) -> int:
        return len(text.encode())

    def clip(self, text: str, limit: int) -> str:
        return text.encode()[:limit].decode(errors="ignore")


@given(st.text(max_size=3000), st.integers(30, 400))
def test_a_condensed_text_keeps_to_its_limit_but_for_our_own_words(text: str, limit: int) -> None:
    own_words = len(
        "…\n[1234 tokens left out, among them:\n\n]\n… [truncated, tokens in all]".encode()
    )

    assert Bytes().count(condensed_to(text, limit, Bytes())) <= limit + own_words


@given(st.lists(st.integers(0, 10_000), max_size=30), st.integers(0, 20_000))
def test_shares_stay_within_the_limit_and_need(sizes: list[int], limit: int) -> None:
    found = shares(sizes, limit)

    assert all(share <= size for share, size in zip(found, sizes, strict=True))
    assert sum(found) <= limit
    assert found == sizes or sum(found) > limit - len(sizes)


def test_small_sizes_get_all_they_need() -> None:
    assert shares([10, 5000, 20, 9000], 1030) == [10, 500, 20, 500]
