"""An administrator at work beside a memory that is Ada's."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agents.models import AgentProfile, RequestSnapshot, Turn
from agents.tokens import make
from memory.models import Blob
from memory.services.note import note
from tests.memory.services.editing import beekeeping


@pytest.fixture
def root(django_user_model):
    return django_user_model.objects.create_superuser("root")


@pytest.fixture
def client(root):
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def world(resource, ada):
    """Return a memory with a row in every table."""
    profile = AgentProfile.objects.create(slug="demo", name="Demo", instructions="Be brief.")
    world = beekeeping(resource)
    world.thread.agent = profile.slug
    world.thread.title = "Bees"
    world.thread.save()
    world.note = note(world.record.pk, "Wax is dear", author=ada)
    world.turn = Turn.objects.create(
        thread=world.thread, number=1, status="done", prompt="Hello", first_position=1
    )
    world.turn.last_position = 2
    world.turn.save()
    RequestSnapshot.objects.create(turn=world.turn, step=1, revision=1, blocks=[], total=9)
    Blob.objects.keep(["What was asked"])
    make(ada, "Backup")
    world.record.refresh_from_db()
    return world


def person(model, name, *groups, **fields):
    """Return a client of somebody in some groups."""
    user = model.objects.create_user(name, **fields)
    for group in groups:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    client = Client()
    client.force_login(user)
    return client
