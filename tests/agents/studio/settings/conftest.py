import pytest

from tests.agents.clients import client_of


@pytest.fixture
def member(ada):
    return client_of(ada)


@pytest.fixture
def admin(ben):
    ben.is_superuser = True
    ben.save()
    return client_of(ben)
