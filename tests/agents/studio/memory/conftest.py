import pytest
from django.contrib.auth.models import Group

from tests.memory.services.editing import beekeeping, condense


@pytest.fixture
def world(resource, profile):
    """Return a small memory of Ada's at revision 2, with a chunk that waits and a raw tail."""
    world = beekeeping(resource)
    world.thread.agent = profile.slug
    world.thread.title = "The apiary"
    world.thread.save()
    return world


@pytest.fixture
def condensed(world):
    """Return the memory after a reflection that made one line of three."""
    condense(world, "r", [world.a, world.b], "Ada keeps bees for honey")
    return world


@pytest.fixture
def here(client, ada):
    """Return a browser Ada is signed in with."""
    client.force_login(ada)
    return client


@pytest.fixture
def reader(client, cleo, resource):
    """Return a browser of somebody who may read Ada's memory, and no more."""
    resource.members.add(cleo)
    cleo.groups.add(Group.objects.create(name="viewers"))
    client.force_login(cleo)
    return client
