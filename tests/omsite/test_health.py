import pytest
from django.test import RequestFactory

from omsite.health import NotReady, readyz

pytestmark = pytest.mark.django_db


def ready(**checks):
    return readyz(RequestFactory().get("/readyz"), checks)


def test_a_process_that_answers_lives_without_asking_anything(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/healthz").status_code == 200


def test_a_process_with_all_it_needs_is_ready(client):
    found = client.get("/readyz")
    assert (found.status_code, found.json()) == (
        200,
        {"database": "ok", "migrations": "ok", "events": "ok"},
    )


def test_what_is_missing_is_named():
    def away():
        raise NotReady("2 migrations are missing: run manage.py migrate")

    found = ready(database=lambda: None, migrations=away)
    assert found.status_code == 503
    assert b"run manage.py migrate" in found.content


def test_an_address_with_a_password_is_not_told():
    def away():
        raise OSError("redis://:hunter2@there:6379 refused")

    found = ready(events=away)
    assert found.status_code == 503
    assert b"hunter2" not in found.content
