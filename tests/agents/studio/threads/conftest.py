import pytest
from django.contrib.auth.models import Group

from agents.services.thread import start
from memory.models import Resource
from tests.agents.clients import client_of


@pytest.fixture
def viewer(cleo, resource):
    """Sign Cleo in, who may look at Ada's conversations and do nothing."""
    cleo.groups.add(Group.objects.create(name="viewers"))
    resource.members.add(cleo)
    return client_of(cleo)


@pytest.fixture
def operator(ben):
    ben.groups.add(Group.objects.create(name="operators"))
    return client_of(ben)


@pytest.fixture
def named(resource, profile):
    """Return a function that begins a conversation of Ada's with a title."""
    return lambda title, **more: start(resource, profile, title=title, **more)


@pytest.fixture
def team(ada):
    """Return a resource of Ada's whose conversations share one memory."""
    team = Resource.objects.create(key="team", name="The team", scope="resource")
    team.members.add(ada)
    return team
