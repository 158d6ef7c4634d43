"""People with tokens, and a conversation whose memory was changed."""

import json

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agents import tokens
from agents.models import AgentProfile, Turn
from memory.services.note import note
from tests.memory.services.editing import beekeeping

API = "/api/v1"


class Caller:
    """Call the API as somebody, with a token unless told otherwise."""

    def __init__(self, user, **headers):
        self.client = Client(raise_request_exception=False)
        if user is not None:
            self.token, self.secret = tokens.make(user, "Test")
            headers = {"Authorization": f"Bearer {self.secret}", **headers}
        self.headers = headers

    def call(self, method, path, body=None, **headers):
        return self.client.generic(
            method,
            API + path,
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={**self.headers, **headers},
        )

    def get(self, path, **headers):
        return self.call("GET", path, **headers)

    def post(self, path, body=None, **headers):
        return self.call("POST", path, {} if body is None else body, **headers)

    def ok(self, method, path, body=None, **headers):
        """Return what a call answers, which must be well."""
        response = self.call(method, path, body, **headers)
        assert response.status_code < 300, response.content
        return response.json()

    def problem(self, method, path, body=None, **headers):
        """Return the status and the sentence of a call that is not carried out."""
        response = self.call(method, path, body, **headers)
        assert response["Content-Type"] == "application/problem+json"
        problem = response.json()
        assert problem["status"] == response.status_code
        assert problem["detail"][:1].strip()
        return response.status_code, problem["detail"]


@pytest.fixture
def world(resource):
    """Return a memory with a note, and a turn that was answered."""
    AgentProfile.objects.create(slug="demo", name="Demo", instructions="Be brief.", model="fake")
    world = beekeeping(resource)
    world.thread.agent = "demo"
    world.thread.title = "Bees"
    world.thread.save()
    world.note = note(world.record.pk, "Wax is dear")
    world.turn = Turn.objects.create(
        thread=world.thread,
        number=1,
        status=Turn.Status.DONE,
        prompt="Tell me about time.",
        first_position=1,
        last_position=2,
    )
    return world


@pytest.fixture
def member(ada):
    return Caller(ada)


@pytest.fixture
def stranger(cleo):
    return Caller(cleo)


@pytest.fixture
def viewer(django_user_model, resource):
    person = django_user_model.objects.create_user("vera")
    person.groups.add(Group.objects.create(name="viewers"))
    resource.members.add(person)
    return Caller(person)


@pytest.fixture
def operator(ben):
    ben.groups.add(Group.objects.create(name="operators"))
    return Caller(ben)


@pytest.fixture
def admin(django_user_model):
    person = django_user_model.objects.create_superuser("root")
    return Caller(person)
