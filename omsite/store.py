"""Look after the database as a whole: is it whole, set it aside, save it, bring it back.

A backup is one tar file: ``about.json``, the database (a SQLite file, or what pg_dump wrote)
and the folder of media. It is taken while others write: SQLite's backup and pg_dump both read
one moment. Media come after the database, so that each file a saved row names is there; one
that came later is a file that no row names.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

FORMAT = 1
ABOUT, MEDIA = "about.json", "media"
DATABASES = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}
COMPANIONS = ("", "-wal", "-shm", "-journal")
#: Up to this size a file is read whole to see whether it is sound; of a larger one, its schema.
WHOLE_BYTES = 256 * 2**20


class StoreError(Exception):
    """Say in a sentence why nothing was saved, or nothing brought back."""


def damage(path: Path) -> str:
    """Return what is wrong with a SQLite file, nothing where it is sound or does not exist."""
    if not path.is_file() or not (size := path.stat().st_size):
        return ""
    look = "PRAGMA quick_check(1)" if size <= WHOLE_BYTES else "SELECT 'ok' FROM sqlite_schema"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            (found,) = connection.execute(look).fetchone() or ("ok",)
    except sqlite3.OperationalError:
        return ""  # Somebody else holds it: that is another fault, told where it is met.
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == "ok" else str(found)


def require_sound(database: Mapping[str, Any]) -> None:
    """Raise StoreError, with what can be done, where the file of a SQLite database is damaged."""
    path = Path(database["NAME"])
    if _vendor(database) == "sqlite" and (wrong := damage(path)):
        raise StoreError(
            f"The database {path} is damaged: {wrong}. Nothing was changed. "
            "“manage.py restore FILE --replace” brings a backup back; “manage.py studio --fresh” "
            "begins an empty one. Both move the damaged file aside and delete nothing."
        )


def set_aside(path: Path) -> Path:
    """Rename a SQLite file and what belongs to it; return its new path. Nothing is deleted."""
    aside = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
    for companion in COMPANIONS:
        part = path.with_name(path.name + companion)
        if part.exists():
            part.rename(aside.with_name(aside.name + companion))
    return aside


def save(target: Path, database: Mapping[str, Any], media: Path) -> None:
    """Write a backup; ``database`` is an entry of Django's DATABASES.

    Raises StoreError where the file exists, the database is in memory or pg_dump fails.
    """
    if target.exists():
        raise StoreError(f"{target} exists. Name a file that does not.")
    vendor = _vendor(database)
    with TemporaryDirectory(dir=target.resolve().parent) as folder:
        saved = Path(folder, DATABASES[vendor])
        (_copy if vendor == "sqlite" else _dump)(database, saved)
        about = Path(folder, ABOUT)
        about.write_text(json.dumps({"format": FORMAT, "database": vendor}))
        written = Path(folder, "backup.tar")
        with tarfile.open(written, "w") as tar:
            tar.add(about, ABOUT)
            tar.add(saved, saved.name)
            if media.is_dir():
                tar.add(media, MEDIA)
        written.rename(target)


def restore(source: Path, database: Mapping[str, Any], media: Path, *, replace: bool) -> str:
    """Bring a backup back; return what became of the database that was there.

    Media that exist stay. Raises StoreError where the file is no backup or of another kind of
    database, where a database is there that is not to be replaced, or where pg_restore fails.
    """
    vendor = _vendor(database)
    with TemporaryDirectory() as folder:
        kept = Path(folder)
        _unpack(source, kept, vendor)
        put = _put_file if vendor == "sqlite" else _load
        said = put(kept / DATABASES[vendor], database, replace)
        if (kept / MEDIA).is_dir():
            shutil.copytree(kept / MEDIA, media, dirs_exist_ok=True)
    return said


def _vendor(database: Mapping[str, Any]) -> str:
    vendor = str(database["ENGINE"]).rpartition(".")[2].replace("sqlite3", "sqlite")
    if vendor not in DATABASES:
        raise StoreError(f"Only SQLite and PostgreSQL can be saved, not {vendor}.")
    return vendor


def _unpack(source: Path, folder: Path, vendor: str) -> None:
    try:
        with tarfile.open(source) as tar:
            # Older releases of Python 3.11 have no filters of their own.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder, members=filter(_belongs, tar))
        about = json.loads((folder / ABOUT).read_text())
    except (OSError, tarfile.TarError, ValueError) as error:
        raise StoreError(f"{source} is no backup that can be read: {error}") from error
    if about.get("format") != FORMAT:
        raise StoreError(f"{source} was written by another version: format {about.get('format')}.")
    if about.get("database") != vendor:
        raise StoreError(
            f"{source} holds a {about.get('database')} database, and this one is {vendor}. "
            "Move single resources with om export and om import."
        )


def _belongs(member: tarfile.TarInfo) -> bool:
    """Tell whether a backup may hold this: files and folders, nothing that leads out of it."""
    path = PurePosixPath(member.name)
    inside = not path.is_absolute() and ".." not in path.parts
    return inside and (member.isfile() or member.isdir())


def _copy(database: Mapping[str, Any], saved: Path) -> None:
    path = Path(database["NAME"])
    if not path.is_file():
        raise StoreError(f"There is no database at {path}.")
    with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(saved)) as there:
        here.backup(there)


def _put_file(saved: Path, database: Mapping[str, Any], replace: bool) -> str:
    path = Path(database["NAME"])
    said = ""
    if path.exists():
        if not replace:
            raise StoreError(f"There is a database at {path}. Add --replace to move it aside.")
        said = f"The database that was there is now {set_aside(path)}."
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(saved, path)
    return said


def _dump(database: Mapping[str, Any], saved: Path) -> None:
    _run(["pg_dump", "--format=custom", "--no-owner", f"--file={saved}"], database)


def _load(saved: Path, database: Mapping[str, Any], replace: bool) -> str:
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
    found = _run(["psql", "--no-psqlrc", "--tuples-only", f"--command={tables}"], database)
    if int(found) and not replace:
        raise StoreError("The database holds tables. Add --replace to have them replaced.")
    _run(
        [
            *("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction"),
            *("--exit-on-error", f"--dbname={database['NAME']}", str(saved)),
        ],
        database,
    )
    return "The tables that were there were replaced." if int(found) else ""


def _run(command: list[str], database: Mapping[str, Any]) -> str:
    """Run one of PostgreSQL's programs; its password travels in the environment, never in sight."""
    keys = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    told = {name: str(database[key]) for name, key in keys.items() if database.get(key)}
    environment = {**os.environ, **told, "PGDATABASE": str(database["NAME"])}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise StoreError(f"{command[0]} is not installed: it comes with PostgreSQL.") from error
    if done.returncode:
        raise StoreError(f"{command[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout
