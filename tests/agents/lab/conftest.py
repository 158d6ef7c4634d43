import pytest

from agents.lab.scenario import read
from agents.lab.stage import open_lab

TEAM = """\
name: A team and a stranger
panes:
  A: {user: Ada, resource: team, thread: kitchen}
  B: {user: Ben, resource: team, thread: garden}
  C: {user: Cleo, resource: Cleo, thread: letters}
facts: [Ruth]
"""


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


@pytest.fixture
def lab(db):
    return open_lab(read(TEAM))


@pytest.fixture
def pane(lab):
    """Return a function that returns a pane by its letter."""
    panes = {each.letter: each for each in lab.panes.select_related("person", "thread")}
    return panes.__getitem__
