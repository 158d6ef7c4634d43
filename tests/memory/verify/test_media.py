"""What is wrong with pictures and files is found, and nothing else."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from memory import media
from memory.models.media import path_of
from memory.verify import verify

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(tmp_path, settings):
    settings.MEDIA_ROOT = str(tmp_path)
    return tmp_path


@pytest.fixture
def stored(folder):
    """Return the file of something that is stored."""
    return folder / path_of(media.keep(b"An oak table", media_type="text/plain").hash)


def found():
    return [(each.invariant, each.sentence) for each in verify().violations]


def stray(folder: Path, **age):
    path = folder / "ab" / "stray"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"?")
    past = (timezone.now() - timedelta(**age)).timestamp()
    os.utime(path, (past, past))


def test_files_that_are_what_they_were_are_clean(stored):
    report = verify()
    assert report.clean
    assert report.checked["media"] == 1


def test_a_file_that_is_gone_is_found(stored):
    stored.unlink()
    assert found() == [
        ("media.file", f"The file {stored.name} is not in the media folder, or was cut short.")
    ]


def test_a_file_that_was_cut_short_is_found(stored):
    stored.write_bytes(b"An oak")
    assert [invariant for invariant, _ in found()] == ["media.file"]


def test_a_file_of_the_same_length_with_other_bytes_is_found(stored):
    stored.write_bytes(b"An ash table")
    assert found() == [
        ("media.file", f"The file {stored.name} holds other bytes than were stored.")
    ]


def test_a_file_that_no_row_names_is_found_once_nobody_writes_it_any_more(folder):
    stray(folder, minutes=1)
    assert found() == []
    stray(folder, hours=2)
    assert found() == [("media.stray", "No row names the file ab/stray in the media folder.")]


def test_one_conversation_is_checked_without_reading_every_file(stored, thread):
    stored.unlink()
    assert verify(thread=thread.pk).clean
