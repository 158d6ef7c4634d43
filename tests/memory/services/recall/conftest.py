import pytest

from memory.models import MemoryRecord, Thread
from memory.services.look import record_of


@pytest.fixture
def allow(thread):
    """Set what the memory of the thread says about recalling."""

    def set_to(retrieval):
        record = record_of(thread)
        MemoryRecord.objects.filter(pk=record.pk).update(config={"retrieval": retrieval})

    return set_to


@pytest.fixture
def everywhere(allow):
    allow(True)


@pytest.fixture
def another(resource):
    """Make another thread of the same resource."""

    def made(title="Garden", **fields):
        return Thread.objects.create(resource=resource, agent="tester", title=title, **fields)

    return made
