import psycopg
from django.db import OperationalError
from django.test import RequestFactory

from omsite.failed import failed


def answer(error, path="/chat/", **headers):
    """Return what is answered while an error is handled, as Django calls it."""
    try:
        raise error
    except type(error):
        return failed(RequestFactory().get(path, headers=headers))


def away():
    error = OperationalError("connection refused")
    error.__cause__ = psycopg.OperationalError("connection refused")
    return error


def test_a_database_that_is_away_gives_a_page_that_says_what_to_do():
    found = answer(away())
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    assert b"Try again in a few seconds" in found.content


def test_who_sent_a_form_is_told_to_reload_and_everybody_else_is_led_back():
    request = RequestFactory().post("/chat/")
    try:
        raise away()
    except OperationalError:
        sent = failed(request).content
    assert b"Reload this page" in sent
    assert b"href" not in sent.partition(b"<main")[2]
    assert b'<a class="button" href="">' in answer(away()).content


def test_the_theme_that_was_chosen_stays():
    request = RequestFactory().get("/chat/")
    request.COOKIES["theme"] = "dark"
    try:
        raise away()
    except OperationalError:
        assert b'data-theme="dark"' in failed(request).content


def test_a_script_is_told_in_a_sentence():
    found = answer(away(), **{"HX-Request": "true"})
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    assert b"<" not in found.content


def test_the_api_answers_a_problem():
    found = answer(away(), "/api/v1/threads")
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    assert found["Content-Type"] == "application/problem+json"


def test_a_mistake_of_ours_stays_one():
    assert answer(ValueError("a mistake")).status_code == 500
