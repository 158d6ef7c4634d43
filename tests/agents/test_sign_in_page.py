"""Signing in, and what a page says to whoever failed too often."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

WRONG, RIGHT = {"username": "ada", "password": "no"}, {"username": "ada", "password": "ada"}


@pytest.fixture(autouse=True)
def tries(settings):
    settings.SIGN_IN_TRIES = {"account": 2, "address": 4}


def post(form=WRONG, path="/sign-in/", client=None, **extra):
    return (client or Client()).post(path, form, **extra)


def test_who_failed_too_often_is_told_how_long_to_wait(ada):
    assert [post().status_code for _ in range(3)] == [422, 422, 429]
    refused = post(RIGHT)
    assert refused.status_code == 429
    assert 890 < int(refused["Retry-After"]) <= 901
    page = refused.content.decode()
    assert "Signing in failed too often" in page
    assert "try again in 15 min" in page
    assert "sessionid" not in refused.cookies


def test_signing_in_ends_the_count(ada):
    for _ in range(3):
        assert post().status_code == 422
        assert post(RIGHT).status_code == 302


def test_the_administration_has_no_door_of_its_own(ada):
    for _ in range(2):
        post()
    client = Client()
    answer = client.post("/admin/login/?next=/admin/", RIGHT)
    assert answer.status_code == 302
    assert answer.url.startswith("/sign-in/?next=/admin/")
    assert "sessionid" not in client.cookies
    assert post(RIGHT, path=answer.url).status_code == 429


def test_an_empty_form_is_no_attempt():
    for form in ({}, {"username": "ada"}, {"password": "x"}) * 3:
        assert post(form).status_code == 422


def test_a_forged_header_is_no_new_address():
    found = [
        post({"username": f"u{n}", "password": "x"}, headers={"X-Forwarded-For": f"192.0.2.{n}"})
        for n in range(5)
    ]
    assert [each.status_code for each in found] == [422] * 4 + [429]


def test_behind_a_proxy_each_address_has_a_count_of_its_own(settings):
    settings.BEHIND_PROXY = True
    for n in range(8):
        answer = post(
            {"username": f"u{n}", "password": "x"}, headers={"X-Forwarded-For": f"192.0.2.{n % 2}"}
        )
        assert answer.status_code == 422


def test_there_is_no_way_to_sign_up():
    for path in ("/sign-up/", "/register/", "/accounts/signup/", "/admin/register/"):
        assert post(path=path).status_code in (302, 404)
