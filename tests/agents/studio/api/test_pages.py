import json
import re

import pytest
from django.test import Client

from agents import tokens
from agents.api.site import schema
from agents.models import Token
from agents.studio.api.listing import operations_of

pytestmark = pytest.mark.django_db


def made_in(page):
    return re.search(r'<code id="secret">([^<]+)</code>', page)


def test_a_token_is_shown_once_and_lets_its_person_in(signed_in, ada):
    page = signed_in.post("/account/tokens/", {"name": "Backup", "days": "90"}).content.decode()
    secret = made_in(page)[1]

    assert tokens.user_of(secret) == ada
    later = signed_in.get("/account/tokens/").content.decode()
    assert "Backup" in later
    assert secret not in later
    assert made_in(later) is None


def test_a_token_lasts_as_long_as_chosen(signed_in):
    signed_in.post("/account/tokens/", {"name": "One", "days": "30"})
    signed_in.post("/account/tokens/", {"name": "Two", "days": ""})

    one, two = (Token.objects.get(name=name) for name in ("One", "Two"))
    assert (one.expires_at - one.created_at).days in (29, 30)
    assert two.expires_at is None


@pytest.mark.parametrize("given", [{"name": " ", "days": "30"}, {"name": "x", "days": "7000"}])
def test_what_cannot_be_made_is_said_and_what_was_typed_stays(signed_in, given):
    response = signed_in.post("/account/tokens/", given)

    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert f'value="{given["name"]}"' in response.content.decode()
    assert not Token.objects.exists()


def test_a_revoked_token_is_shown_as_such_and_lets_nobody_in(signed_in, ada):
    token, secret = tokens.make(ada, "Backup")

    response = signed_in.post(f"/account/tokens/{token.pk}/revoke", follow=True)

    assert "nobody gets in with it any more" in response.content.decode()
    assert ">revoked<" in response.content.decode()
    assert tokens.user_of(secret) is None


def test_tokens_of_others_are_neither_seen_nor_revoked(signed_in, ben):
    token, secret = tokens.make(ben, "Theirs")

    assert "Theirs" not in signed_in.get("/account/tokens/").content.decode()
    assert signed_in.post(f"/account/tokens/{token.pk}/revoke").status_code == 404
    assert tokens.user_of(secret) == ben


def test_a_name_is_text_and_nothing_else(signed_in, ada):
    tokens.make(ada, "<script>alert(1)</script>")

    assert "<script>alert" not in signed_in.get("/account/tokens/").content.decode()


def test_the_description_is_open_to_scripts_and_names_every_problem():
    response = Client().get("/api/openapi.json")

    described = json.loads(response.content)
    assert response.status_code == 200
    assert described["openapi"].startswith("3.")
    for methods in described["paths"].values():
        for operation in methods.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_every_operation_says_what_it_does_in_words_of_its_own():
    operations = [o for m in schema()["paths"].values() for o in m.values()]

    summaries = [operation["summary"] for operation in operations]
    assert len(set(summaries)) == len(summaries)
    assert all(operation.get("description") for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)


def test_the_page_lists_every_operation_with_a_call_to_copy(signed_in):
    page = signed_in.get("/api/docs").content.decode()

    for path, methods in schema()["paths"].items():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in page
        assert path in page
    assert "<script>" not in page
    assert " style=" not in page


def test_a_call_to_copy_holds_a_body_that_the_api_takes():
    groups = operations_of(schema(), "https://studio.example")
    send = next(o for each in groups.values() for o in each if o.id == "messages_send")

    assert json.loads(send.body) == {"text": "", "files": []}
    assert '"https://studio.example/api/v1/threads/{thread_id}/messages"' in send.curl
    assert "-X POST" in send.curl
