"""Let users come without a password, since hashing one takes long, and hear wake-ups."""

import pytest
from django.contrib.auth import get_user_model

from agents.services.send import turns


@pytest.fixture
def ada(db):
    return get_user_model().objects.create_user("ada")


class Bell:
    """Remember which threads were woken."""

    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)


@pytest.fixture
def bell():
    bell = Bell()
    previous = turns.use(bell)
    yield bell
    turns.use(previous)
