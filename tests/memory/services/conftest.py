"""Let users come without a password: hashing one takes longer than most tests here."""

import pytest
from django.contrib.auth import get_user_model


@pytest.fixture
def ada(db):
    return get_user_model().objects.create_user("ada")
