"""Claim what is due to be observed."""

from memory.services import observe


def claimed(thread, **options):
    found = observe.claim(thread.pk, **options)
    assert found is not None
    return found
