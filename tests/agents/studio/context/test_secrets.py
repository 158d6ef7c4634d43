import pytest

from agents.studio.context.secrets import masked, masked_text

LETTERS = "abcDEF0123456789" * 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"sk-{LETTERS}", "sk-abc…[masked]"),
        (f"use ghp_{LETTERS[:36]} then", "use ghp_ab…[masked] then"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIO…[masked]"),
        (f"eyJ{LETTERS[:20]}.eyJ{LETTERS[:20]}.{LETTERS[:20]}", "eyJabc…[masked]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", "-----B…[masked]"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer …[masked]"),
        ('{"api_key": "abcdefgh1234"}', '{"api_key": "…[masked]"}'),
        ("OPENAI_API_KEY=abcdefgh1234", "OPENAI_API_KEY=…[masked]"),
        ("password = correct-horse", "password = …[masked]"),
        ("postgres://ada:hunter22@db/x", "postgres://ada:…[masked]@db/x"),
    ],
)
def test_what_has_the_shape_of_a_secret_is_masked(text, shown):
    assert masked_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "The password is on the fridge.",
        "Ada keeps 4,200 tokens of memory.",
        "Ask-me-anything-about-bees",
        "https://example.org/a:b@c",
        "sk-short",
        "api key: none",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert masked_text(text) == text


def test_strings_inside_json_are_masked_and_nothing_else():
    content = {"parts": [{"args": f"sk-{LETTERS}", "count": 3, "ok": None}]}
    assert masked(content) == {"parts": [{"args": "sk-abc…[masked]", "count": 3, "ok": None}]}
