"""Keep the bytes of pictures and files outside the rows, each once, under their SHA-256.

A row and its file are written and removed under the row's lock, so that storing and sweeping at
the same time leave either both or neither. What cannot be prevented (a crash between the two, a
folder emptied by hand) is found by ``audit``, and never fails a message.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from pydantic_ai.messages import BinaryContent

from memory.headers import TEXT_TYPES, measure
from memory.models import Media, Message
from memory.models.media import path_of
from memory.stored import REFERENCES, MediaMissing, Reference, stored
from memory.tiers import offline_mode

KEPT_AT_LEAST = timedelta(days=2)
CACHE_BYTES = 64 * 1024 * 1024
AT_ONCE = 100
"""Hashes that one statement looks for: SQLite takes a condition of at most 1,000 parts."""


def keep(data: bytes, *, media_type: str, name: str = "", tokens: int | None = None) -> Reference:
    """Store bytes, once however often they come, and return what stands for them."""
    digest, extent = sha256(data).hexdigest(), measure(data)
    with transaction.atomic():
        if not Media.objects.filter(hash=digest).update(used_at=timezone.now()):
            row = Media(
                hash=digest,
                media_type=media_type[:200],
                name=name[:200],
                size=len(data),
                width=extent.width,
                height=extent.height,
                pages=extent.pages,
            )
            Media.objects.bulk_create([row], ignore_conflicts=True)
        _write(path_of(digest), data)
    return Reference(digest, len(data), extent.width, extent.height, extent.pages, tokens)


def touch(digest: str) -> bool:
    """Note that media are used again; return False when they are not stored any more."""
    return bool(Media.objects.filter(hash=digest).update(used_at=timezone.now()))


def _write(path: str, data: bytes) -> None:
    if default_storage.exists(path):
        if default_storage.size(path) == len(data):
            return
        default_storage.delete(path)  # A crash left a part of it.
    stored = default_storage.save(path, ContentFile(data))
    if stored != path:
        default_storage.delete(stored)  # Somebody else wrote the same bytes first.


def exists(digest: str) -> bool:
    """Tell whether the bytes with this SHA-256 are in the storage."""
    return default_storage.exists(path_of(digest))


def read(digest: str) -> bytes:
    """Return the bytes with this SHA-256. Raises MediaMissing."""
    held = _CACHE.get(digest)
    if held is not None:
        return held
    try:
        with default_storage.open(path_of(digest)) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        raise MediaMissing(f"The file {digest[:12]}… is not in the media folder.") from None
    _CACHE.put(digest, data)
    return data


class _Cache:
    """Hold the bytes used last, up to a size."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, digest: str) -> bytes | None:
        with self._lock:
            if digest in self._held:
                self._held.move_to_end(digest)
            return self._held.get(digest)

    def put(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest not in self._held:
                self._held[digest] = data
                self._size += len(data)
            while self._size > self._limit:
                self._size -= len(self._held.popitem(last=False)[1])

    def drop(self, digest: str) -> None:
        with self._lock:
            self._size -= len(self._held.pop(digest, b""))


_CACHE = _Cache(CACHE_BYTES)


def content_of(digest: str) -> BinaryContent | None:
    """Return the picture or file with this SHA-256; None when its row or bytes are gone.

    Every kind of text comes as plain text, which each provider takes.
    """
    row = Media.objects.filter(hash=digest).first()
    if row is None or not exists(digest):
        return None
    reference = Reference(row.hash, row.size, row.width, row.height, row.pages)
    media_type = "text/plain" if row.media_type in TEXT_TYPES else row.media_type
    return stored(reference, media_type=media_type, name=row.name or row.hash[:6])


def passes(media_type: str, allowed: bool | str | Sequence[str], *, model: str = "") -> bool:
    """Tell whether media of a type are shown to a model.

    ``allowed`` is True, False, a list of types like ``image/png``, ``image/*`` or ``*``, where
    case does not count, or ``"auto"``: what the named model can read.
    """
    if isinstance(allowed, bool):
        return allowed
    if allowed == "auto":
        return reads(model, media_type)
    patterns = [allowed] if isinstance(allowed, str) else allowed
    return any(fnmatchcase(media_type.lower(), pattern.lower()) for pattern in patterns)


#: Models that read text only; every other one is given what it may turn out to read.
_TEXT_ONLY = (
    *("offline", "offline:*", "*:gpt-3.5*", "*:o1-mini*", "*:o3-mini*", "deepseek:*", "cerebras:*"),
    *("*deepseek-*", "*:codestral*", "*/gpt-oss*", "*:gpt-oss*"),
)


def reads(model: str, media_type: str) -> bool:
    """Tell whether a model is known, or may be hoped, to read media of a type."""
    if media_type.lower().startswith("text/") and offline_mode(model) is None:
        return True
    return not any(fnmatchcase(model.lower(), pattern) for pattern in _TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class Audit:
    """Hold what does not fit: rows whose file is gone or cut short, files that have no row."""

    rows_without_file: tuple[str, ...]
    files_without_row: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Tell whether every row has its file and every file its row."""
        return not (self.rows_without_file or self.files_without_row)


def audit() -> Audit:
    """Compare rows and files; both are named by their SHA-256, strange files by their path."""
    rows = dict(Media.objects.values_list("hash", "size"))
    files = {path.rsplit("/", 1)[-1]: path for path in _files()}
    lacking = [
        digest
        for digest, size in rows.items()
        if files.get(digest) != path_of(digest) or default_storage.size(files[digest]) != size
    ]
    strange = [path for name, path in files.items() if name not in rows]
    return Audit(tuple(sorted(lacking)), tuple(sorted(strange)))


def _files() -> Iterator[str]:
    for folder in _listed("")[0]:
        yield from (f"{folder}/{name}" for name in _listed(folder)[1])


def _listed(folder: str) -> tuple[list[str], list[str]]:
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []


@dataclass(frozen=True, slots=True)
class Swept:
    """Count what a sweep removed."""

    media: int
    files: int


def sweep(*, older_than: timedelta = KEPT_AT_LEAST, keep: Collection[str] = ()) -> Swept:
    """Remove media that no message references and nobody stored for a while; return how many.

    ``keep`` are the hashes of media that wait to be sent. Files without a row go too, once they
    are as old.
    """
    before = timezone.now() - older_than
    removed = sum(_remove(digest, Q(used_at__lt=before)) for digest in _unused(before, keep))
    return Swept(removed, sum(map(_remove_file, _strays(before))))


def sweepable(*, older_than: timedelta = KEPT_AT_LEAST, keep: Collection[str] = ()) -> Swept:
    """Count what a sweep would remove now, and remove nothing."""
    before = timezone.now() - older_than
    return Swept(len(_unused(before, keep)), len(_strays(before)))


def _unused(before: datetime, keep: Collection[str]) -> list[str]:
    old = set(Media.objects.untouched_since(before).values_list("hash", flat=True))
    return sorted(old - referenced() - set(keep)) if old else []


def _strays(before: datetime) -> list[str]:
    """Return the files that no row names and nobody has written to for a while."""
    return [
        path
        for path in audit().files_without_row
        if default_storage.get_modified_time(path) < before
    ]


def destroy(hashes: Iterable[str], *, keep: Collection[str] = ()) -> list[str]:
    """Remove these media at once, but for those a message still references; return which.

    Call it after the messages were erased, in the same transaction.
    """
    wanted = set(hashes) - set(keep)
    gone = wanted - referenced(wanted) if wanted else set()
    return [digest for digest in sorted(gone) if _remove(digest, Q())]


def _remove(digest: str, still: Q) -> bool:
    with transaction.atomic():
        if not Media.objects.filter(still, hash=digest).delete()[0]:
            return False
        # Not before: should the transaction fail, the row is there again and needs its file.
        transaction.on_commit(partial(_drop_file, digest))
    return True


def _drop_file(digest: str) -> None:
    """Remove the bytes unless somebody has stored them again."""
    with transaction.atomic():
        # Holding the key keeps others from storing the same bytes until they are removed.
        row, is_ours = Media.objects.get_or_create(hash=digest, defaults={"size": 0})
        if is_ours:
            default_storage.delete(path_of(digest))
            _CACHE.drop(digest)
            row.delete()


def _remove_file(path: str) -> bool:
    digest = path.rsplit("/", 1)[-1]
    if path == path_of(digest) and len(digest) == sha256().digest_size * 2:
        _drop_file(digest)
    else:
        default_storage.delete(path)
    return True


def referenced(among: Collection[str] | None = None) -> set[str]:
    """Return the hashes of the media that messages reference, or those of a given few."""
    if among is None:
        return _named_in(Q(raw__contains=f'"{REFERENCES}": ['))
    found: set[str] = set()
    wanted = sorted(among)
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        holding = Q(*(Q(raw__contains=digest) for digest in some), _connector=Q.OR)
        found |= _named_in(holding).intersection(some)
    return found


def _named_in(holding: Q) -> set[str]:
    rows = Message.objects.annotate(raw=Cast("payload", TextField())).filter(holding)
    payloads = rows.values_list("payload", flat=True).iterator(chunk_size=200)
    return {each.hash for payload in payloads for each in references(payload)}


def references(payload: Mapping[str, Any] | str) -> list[Reference]:
    """Return the references of a stored message, in the order of its pieces."""
    tree = json.loads(payload) if isinstance(payload, str) else payload
    return [Reference.of_json(each) for each in tree.get(REFERENCES, ())]
