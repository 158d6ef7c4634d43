import pytest

from agents.services.thread import start


@pytest.fixture
def shared(profile):
    """Give the resource one memory; return how to change its options."""

    def change(**options):
        profile.memory_options = {**profile.memory_options, **options}
        profile.save()

    change(scope="resource")
    return change


@pytest.fixture
def threads(shared, resource, profile):
    return [start(resource, profile) for _ in range(3)]
