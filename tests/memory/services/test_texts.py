import pytest

from memory.models import Blob
from memory.services.texts import keep_texts

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_text_sent_again_and_again_is_stored_once(django_assert_num_queries):
    keep_texts(["one", "two", "one"], of=1)
    with django_assert_num_queries(0):
        keep_texts(["two", "one"], of=1)
    assert Blob.objects.count() == 2


def test_a_text_is_stored_on_a_machine_that_just_started():
    keep_texts(["one"], of=1, clock=lambda: 3.0)
    assert Blob.objects.count() == 1


def test_a_text_is_stored_again_once_some_of_its_memory_was_erased():
    keep_texts(["one"], of=("record", 1))
    Blob.objects.all().delete()

    keep_texts(["one"], of=("record", 2))

    assert Blob.objects.count() == 1
