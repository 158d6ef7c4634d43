import pytest

from agents.models import Turn
from agents.services.scope import change_scope
from memory.services.change import Refused
from tests.memory.services.editing import beekeeping, texts, wrong

from .test_fork import turns  # noqa: F401


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def test_the_scope_waits_for_the_answer_being_written(world, turns, ada):  # noqa: F811
    with pytest.raises(Refused, match="when it is done"):
        change_scope(world.thread.resource, "resource", author=ada)

    Turn.objects.filter(status="running").delete()
    (joined,) = change_scope(world.thread.resource, "resource", author=ada)
    assert texts(joined) == texts(world.record)
    assert wrong() == []
