from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.redact import redact


@pytest.mark.parametrize(
    "field", ["encryptedContent", "encrypted_content", "ENCRYPTEDCONTENT", "thoughtSignature"]
)
def test_a_long_encrypted_field_is_replaced_by_its_length(field: str) -> None:
    text = json.dumps({"a": 1, field: "x" * 257, "b": "kept"})

    assert json.loads(redact(text)) == {"a": 1, field: "[257 encrypted characters]", "b": "kept"}


def test_a_short_encrypted_field_stays() -> None:
    text = json.dumps({"encryptedContent": "x" * 256})

    assert redact(text) == text


def test_a_file_in_a_link_is_replaced_by_its_type_and_length() -> None:
    link = "data:image/png;base64," + "QUJD" * 100

    assert redact(f'<img src="{link}"> and <img src="data:image/gif;base64,R0">') == (
        '<img src="[image/png of 422 characters]"> and <img src="data:image/gif;base64,R0">'
    )


def test_escaped_quotes_do_not_end_a_field() -> None:
    text = json.dumps({"encryptedContent": 'a"' * 200, "b": "kept"})

    assert json.loads(redact(text))["b"] == "kept"


@pytest.mark.parametrize(
    "piece", ['"encryptedContent": "', '"encryptedContent":"\\"', "data:a/b", "data:a/b,A", '\\"']
)
def test_half_a_megabyte_of_broken_fields_comes_back(piece: str) -> None:
    text = piece * (500_000 // len(piece))

    assert redact(text)


@given(st.text(max_size=250))
def test_short_texts_stay(text: str) -> None:
    assert redact(text) == text
