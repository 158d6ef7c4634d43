"""Check that pictures and files are there, are what they were, and that no file is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.utils import timezone

from memory import media
from memory.models import Media
from memory.models.media import path_of

from .report import Violation

#: A file is written before its row can be seen.
WRITTEN_WITHIN = timedelta(hours=1)


def check_media(checked: Counter[str]) -> Iterator[Violation]:
    """Read every file that a row names, and look for files that none does."""
    found = media.audit()
    for digest in found.rows_without_file:
        if Media.objects.filter(hash=digest).exists():
            yield _violation(digest, "is not in the media folder, or was cut short")
    lacking = set(found.rows_without_file)
    for digest in Media.objects.order_by("hash").values_list("hash", flat=True):
        checked["media"] += 1
        if digest not in lacking and not _is(digest):
            yield _violation(digest, "holds other bytes than were stored")
    settled = timezone.now() - WRITTEN_WITHIN
    for path in found.files_without_row:
        if _written_before(path, settled):
            sentence = f"No row names the file {path} in the media folder."
            yield Violation("media.stray", sentence, {"file": path})


def _violation(digest: str, what: str) -> Violation:
    return Violation("media.file", f"The file {digest} {what}.", {"media": digest})


def _is(digest: str) -> bool:
    """Tell whether a file still has its hash; one that went meanwhile was not wanted any more."""
    try:
        with default_storage.open(path_of(digest)) as file:
            return _hash(file) == digest
    except FileNotFoundError:
        return True


def _written_before(path: str, moment: datetime) -> bool:
    try:
        return bool(default_storage.get_modified_time(path) < moment)
    except FileNotFoundError:
        return False


def _hash(file: File[bytes]) -> str:
    found = sha256()
    for chunk in file.chunks():
        found.update(chunk)
    return found.hexdigest()
