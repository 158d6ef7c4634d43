"""Find out from its content which format a file is in, and read it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from memory.recordings.json_lines import read_json_lines
from memory.recordings.locomo import read_locomo
from memory.recordings.longmemeval import read_longmemeval
from memory.recordings.rows import Wrong, as_object, decoded, parsed, within
from memory.recordings.values import Recording, RecordingError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
READERS = {"conversation": read_locomo, "haystack_sessions": read_longmemeval}
EXPECTED = (
    'expected JSON lines such as {"at": "2026-01-08T19:12:00+01:00", "user": "Hello"}, '
    "or the JSON of LoCoMo or LongMemEval"
)


def read(path: Path) -> list[Recording]:
    """Return the conversations a file holds, whichever format it is in, gzipped or not.

    Raises RecordingError when the file cannot be read or anything in it is not as it
    should be; nothing is left out in silence.
    """
    try:
        with _opened(path) as file:
            return [read_json_lines(path, file)] if _is_lines(file) else _documents(path, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RecordingError(path, None, f"the gzip file is damaged ({error})") from error
    except OSError as error:
        raise RecordingError(path, None, f"cannot be read: {error.strerror or error}") from error
    except Wrong as error:
        raise RecordingError(path, None, str(error)) from error


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return cast("BinaryIO", gzip.open(path)) if packed else path.open("rb")


def _is_lines(file: BinaryIO) -> bool:
    """Return whether the first line that is not blank stands for itself, and rewind."""
    bare = (line.removeprefix(BYTE_ORDER_MARK).strip() for line in file)
    first = next(filter(None, bare), b"")
    file.seek(0)
    if not first:
        raise Wrong(f"the file is empty; {EXPECTED}")
    if first.startswith(b"[") or first == b"{":
        return False
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return True  # a broken line: reading it will say so, with its number
    return not (isinstance(row, dict) and READERS.keys() & row.keys())


def _documents(path: Path, file: BinaryIO) -> list[Recording]:
    try:
        value = parsed(decoded(file.read()))
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at column {error.colno}"
        raise RecordingError(path, error.lineno, problem) from error
    rows = value if isinstance(value, list) else [value]
    if not rows:
        raise Wrong(f"the list is empty; {EXPECTED}")
    return [_document(row, number) for number, row in enumerate(rows, 1)]


def _document(value: object, number: int) -> Recording:
    with within(f"conversation {number}"):
        row = as_object(value, "it")
        for key, reader in READERS.items():
            if key in row:
                return reader(row)
        raise Wrong(f"has neither {' nor '.join(READERS)}; {EXPECTED}")
