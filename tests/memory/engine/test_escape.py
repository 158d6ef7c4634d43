from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.escape import TAGS, clean, escape

ANY_TEXT = st.text(st.characters(), max_size=200)


@pytest.mark.parametrize("tag", TAGS)
def test_each_of_our_tags_is_escaped_open_and_closed(tag: str) -> None:
    assert escape(f"<{tag}>x</{tag}>") == f"&lt;{tag}>x&lt;/{tag}>"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ('<thread id="1">', '&lt;thread id="1">'),
        ("</OBSERVATIONS>", "&lt;/OBSERVATIONS>"),
        ("< / memory >", "&lt; / memory >"),
        ("<thread", "&lt;thread"),
        ("<<memory>", "<&lt;memory>"),
        ("<memory/>", "&lt;memory/>"),
    ],
)
def test_a_tag_is_escaped_however_it_is_written(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    "text",
    [
        "<threading>",
        "<memory-leak>",
        "<b>bold</b>",
        "a < b",
        "<",
        "<hint>",
        "&lt;memory>",
        "memory>",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert escape(text) == text


@given(ANY_TEXT)
def test_escaping_twice_is_escaping_once(text: str) -> None:
    assert escape(escape(text)) == escape(text)


@given(
    st.lists(st.sampled_from(["<", "/", " ", "memory", "thread", "-title", ">", "x"]), max_size=20)
)
def test_no_arrangement_of_pieces_leaves_a_tag(pieces: list[str]) -> None:
    escaped = escape("".join(pieces)).lower()

    assert not any(f"<{close}{tag}>" in escaped for tag in TAGS for close in ("", "/"))


@pytest.mark.parametrize("end", ["\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_every_line_end_becomes_a_newline(end: str) -> None:
    assert clean(f"a{end}b") == "a\nb"


@pytest.mark.parametrize("code", [0x00, 0x1B, 0x1C, 0x7F, 0x9F, 0xD800, 0xDFFF])
def test_what_cannot_be_shown_is_replaced(code: int) -> None:
    assert clean(f"a{chr(code)}b") == "a\ufffdb"


def test_tabs_newlines_and_emoji_stay() -> None:
    assert clean("a\tb\nc 👩‍💻") == "a\tb\nc 👩‍💻"


@given(ANY_TEXT)
def test_clean_text_has_no_line_end_but_the_newline_and_can_be_encoded(text: str) -> None:
    cleaned = clean(text)

    assert cleaned.splitlines() == cleaned.removesuffix("\n").split("\n") or not cleaned
    assert all(c in "\n\t" or unicodedata.category(c) != "Cc" for c in cleaned)
    assert cleaned.encode().decode() == cleaned
