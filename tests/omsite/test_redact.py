import time

import pytest

from omsite.redact import HIDDEN, redact, secrets_in

KEY = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"Incorrect API key provided: {KEY}.", KEY),
        ("key AIzaSyA1234567890abcdefghijklmnopqrstu is refused", "AIzaSyA1234567890"),
        (f"a token om_{'a1B2' * 11} was used", "a1B2a1B2"),
        ("Authorization: Bearer abc.def.ghi", "abc.def"),
        ("{'authorization': 'Bearer abc.def.ghi', 'accept': '*/*'}", "abc.def"),
        ("[(b'authorization', b'Token abcdefgh')]", "abcdefgh"),
        ("proxy-authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("sent Basic dXNlcjpodW50ZXIyMg== there", "dXNlcjpodW50ZXIyMg"),
        ("sent bearer abcdefgh.1234 there", "abcdefgh"),
        ("Cookie: theme=dark; sessionid=w8xj2kq; csrftoken=Ab12", "w8xj2kq"),
        ("{'sessionid': 'w8xj2kq'}", "w8xj2kq"),
        ("sessionid=w8xj2kq; Path=/", "w8xj2kq"),
        ("x-api-key: abc123", "abc123"),
        ("GET /models?key=1&api_key=abc123&x=2", "abc123"),
        ("OPENAI_API_KEY=abc123", "abc123"),
        ('{"password": "hunter2"}', "hunter2"),
        ("connecting to postgresql://me:hunter2@there/db failed", "hunter2"),
        ("redis://:hunter2@there:6379/0 refused", "hunter2"),
        ("signed by AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", "MII"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text, secret):
    assert secret in text
    found = redact(text)
    assert secret not in found
    assert HIDDEN in found


@pytest.mark.parametrize(
    "text",
    [
        "Turn 0190-ab was taken over by another process.",
        "input_tokens=1200 output_tokens=30",
        "The basic authentication of this provider failed.",
        "om_extractors names nothing; see docs/options.md",
        "GET https://om.example.org:8000/chat/ took 12 ms",
        "task-oriented sk-ills are not keys",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_what_stands_around_a_secret_stays():
    assert redact("Cookie: a=b\nnext line") == f"Cookie: {HIDDEN}\nnext line"
    assert redact("u=1&token=abc&x=2") == f"u=1&token={HIDDEN}&x=2"


def test_a_secret_that_is_known_is_hidden_whatever_it_looks_like():
    assert redact("he said correct horse battery", ["correct horse"]) == f"he said {HIDDEN} battery"


def test_the_secrets_of_an_environment_are_known():
    found = secrets_in(
        {
            "OPENAI_API_KEY": "correct horse",
            "DATABASE_URL": "postgresql://me:p%40ssw0rd99@there/db",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-team=verysecret1,other=verysecret2",
            "OM_METRICS_TOKEN": "scrape-me-please",
            "HOME": "/home/somebody",
            "SHORT_TOKEN": "abc",
        },
        "the secret of Django",
    )
    assert set(found) == {
        "correct horse",
        "p%40ssw0rd99",
        "p@ssw0rd99",
        "verysecret1",
        "verysecret2",
        "scrape-me-please",
        "the secret of Django",
    }
    assert list(found) == sorted(found, key=len, reverse=True)


def test_a_long_text_takes_no_time_to_speak_of():
    began = time.process_time()
    begun = "-----BEGIN PRIVATE KEY-----"
    for piece in ("a-", "token", "://a:", "Bearer ", "cookie", "api_", "sk-", begun):
        redact(piece * 20_000)
    assert time.process_time() - began < 5
