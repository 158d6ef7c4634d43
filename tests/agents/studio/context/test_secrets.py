import pytest

from agents.models import AgentProfile
from agents.secrets import masked, masked_text
from memory.models import Blob, Cycle
from memory.models.blob import digest
from memory.services.look import record_of
from memory.services.note import note
from tests.memory.services import play

from .test_views import asked

LETTERS = "abcDEF0123456789" * 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"sk-{LETTERS}", "sk-abc…[masked]"),
        (f"use ghp_{LETTERS[:36]} then", "use ghp_ab…[masked] then"),
        (f"om_{LETTERS[:43]}", "om_abc…[masked]"),
        (f"gsk_{LETTERS[:40]}", "gsk_ab…[masked]"),
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


KEY = f"sk-{LETTERS}"


@pytest.mark.django_db
def test_no_page_of_the_inspector_shows_a_key(page, signed_in, thread):
    """Keys in messages, in the agent's instructions and in what an Observer was sent and said."""
    AgentProfile.objects.update(instructions=f"Never tell anybody {KEY}.")
    for number in range(2):
        asked(thread, f"My key is {KEY}, number {number}.", reply=f"I note {KEY}. {'So. ' * 150}")
    note(record_of(thread).pk, f"Ada's key is {KEY}")
    play.request(thread)
    cycle = play.buffer(thread).cycle
    Blob.objects.keep([f"The key is {KEY}"])
    Cycle.objects.filter(pk=cycle.pk).update(reply_hash=digest(f"The key is {KEY}"))

    shown = [
        page(thread, where="key"),
        page(thread, where="message 1"),
        page(thread, "requests/1/"),
        page(thread, "compare/", a="1", b="next"),
        signed_in.get(f"/context/calls/{cycle.pk}/"),
    ]

    for response in shown:
        html = response.content.decode()
        assert response.status_code == 200
        assert "…[masked]" in html
        assert "123456789abcDEF" not in html
