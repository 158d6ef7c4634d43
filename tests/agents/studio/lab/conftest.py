import pytest
from django.contrib.auth.models import Group

from agents.lab.scenario import read
from agents.lab.stage import open_lab
from tests.agents.lab.conftest import TEAM


@pytest.fixture
def operator(ben, client):
    """Return a person who may use the lab, signed in."""
    group, _ = Group.objects.get_or_create(name="operators")
    ben.groups.add(group)
    client.force_login(ben)
    return ben


@pytest.fixture
def lab(db):
    return open_lab(read(TEAM), TEAM + "steps:\n  - say: {pane: A, text: The plumber is Ruth.}\n")
