import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command

from omsite.store import StoreError, damage, require_sound, restore, save, set_aside
from tests.servers import DATABASE, missing

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "django.db.backends.sqlite3"


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return [row for (row,) in connection.execute("SELECT said FROM message ORDER BY said")]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "omsite.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE message (said TEXT)")
        connection.execute("INSERT INTO message VALUES ('bees'), ('honey')")
    return path


@pytest.fixture
def database(path):
    return {"ENGINE": ENGINE, "NAME": str(path)}


@pytest.fixture
def media(tmp_path):
    media = tmp_path / "media"
    (media / "ab").mkdir(parents=True)
    (media / "ab" / "abcd").write_bytes(b"a picture")
    return media


def spoil(path):
    whole = bytearray(path.read_bytes())
    whole[100:4000] = b"\x5a" * 3900
    path.write_bytes(whole)


def test_a_sound_file_and_a_missing_one_have_no_damage(path, tmp_path):
    assert damage(path) == ""
    assert damage(tmp_path / "none.sqlite3") == ""


@pytest.mark.parametrize("harm", [spoil, lambda path: path.write_text("not a database at all")])
def test_a_damaged_file_is_refused_with_what_can_be_done(path, database, harm):
    harm(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged: .* --fresh"):
        require_sound(database)
    assert path.read_bytes() == before


def test_a_file_that_is_set_aside_keeps_what_is_in_its_log(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO message VALUES ('oak')")
        connection.commit()
        aside = set_aside(path)
    assert not path.exists()
    assert rows(aside) == ["bees", "honey", "oak"]


def test_a_backup_brings_rows_and_media_back(path, database, media, tmp_path):
    save(tmp_path / "b.tar", database, media)
    elsewhere = {"ENGINE": ENGINE, "NAME": str(tmp_path / "new" / "omsite.sqlite3")}
    assert restore(tmp_path / "b.tar", elsewhere, tmp_path / "new-media", replace=False) == ""
    assert rows(elsewhere["NAME"]) == ["bees", "honey"]
    assert (tmp_path / "new-media" / "ab" / "abcd").read_bytes() == b"a picture"


def test_a_backup_beside_an_open_write_holds_what_was_committed(path, database, media, tmp_path):
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO message VALUES ('half')")
        save(tmp_path / "b.tar", database, media)
        writer.rollback()
    restore(tmp_path / "b.tar", database, media, replace=True)
    assert rows(path) == ["bees", "honey"]


def test_a_database_that_is_there_is_replaced_on_demand_and_moved_aside(
    path, database, media, tmp_path
):
    save(tmp_path / "b.tar", database, media)
    spoil(path)
    spoiled = path.read_bytes()
    with pytest.raises(StoreError, match="--replace"):
        restore(tmp_path / "b.tar", database, media, replace=False)
    assert path.read_bytes() == spoiled
    said = restore(tmp_path / "b.tar", database, media, replace=True)
    aside = Path(said.removeprefix("The database that was there is now ").removesuffix("."))
    assert aside.read_bytes() == spoiled
    assert rows(path) == ["bees", "honey"]


def test_what_is_no_backup_is_refused_and_nothing_changed(path, database, media, tmp_path):
    (tmp_path / "b.tar").write_text("no tar")
    with pytest.raises(StoreError, match="is no backup that can be read"):
        restore(tmp_path / "b.tar", database, media, replace=True)
    assert rows(path) == ["bees", "honey"]


def test_nothing_of_a_backup_is_written_outside_of_where_it_belongs(database, media, tmp_path):
    save(tmp_path / "b.tar", database, media)
    secret = tmp_path / "secret"
    secret.write_text("not in any backup")
    link = tarfile.TarInfo("media/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(secret)
    with tarfile.open(tmp_path / "b.tar", "a") as tar:
        tar.add(secret, "../../outside")
        tar.addfile(link)

    restore(tmp_path / "b.tar", database, tmp_path / "new-media", replace=True)

    brought = [path.name for path in (tmp_path / "new-media").rglob("*") if not path.is_dir()]
    assert brought == ["abcd"]
    assert not (Path(tempfile.gettempdir()) / "outside").exists()


def test_a_backup_of_another_kind_of_database_is_refused(database, media, tmp_path):
    save(tmp_path / "b.tar", database, media)
    other = {"ENGINE": "django.db.backends.postgresql", "NAME": "nothing"}
    with pytest.raises(StoreError, match=r"holds a sqlite database.*om export"):
        restore(tmp_path / "b.tar", other, media, replace=True)


def test_a_file_is_never_written_over(database, media, tmp_path):
    (tmp_path / "b.tar").write_text("precious")
    with pytest.raises(StoreError, match="exists"):
        save(tmp_path / "b.tar", database, media)
    assert (tmp_path / "b.tar").read_text() == "precious"


def test_the_command_says_what_the_service_refuses(tmp_path):
    (tmp_path / "b.tar").write_text("precious")
    with pytest.raises(CommandError, match="exists"):
        call_command("backup", tmp_path / "b.tar")


def manage(*words, **environment):
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**os.environ, "REDIS_URL": "", "SECRET_KEY": "only for tests", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_studio_with_a_damaged_file_does_not_start(path):
    spoil(path)
    done = manage("studio", DATABASE_URL=f"sqlite:///{path}")
    assert done.returncode == 1
    assert f"The database {path} is damaged" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def empty_database():
    """Make two databases on the server, and return their addresses."""
    if absent := missing():
        assert not os.environ.get("CI"), f"{absent} does not answer"
        pytest.skip(f"{absent} does not answer")
    names = [f"omsite_store_{uuid4().hex}" for _ in range(2)]
    with psycopg.connect(DATABASE, autocommit=True) as server:
        for name in names:
            server.execute(f'CREATE DATABASE "{name}"')
        yield [urlsplit(DATABASE)._replace(path=f"/{name}").geturl() for name in names]
        for name in names:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.slow
def test_a_database_on_a_server_is_saved_and_brought_back(empty_database, tmp_path):
    here, there = empty_database
    file = str(tmp_path / "b.tar")
    for words in (["migrate"], ["demo"], ["backup", file]):
        done = manage(*words, DATABASE_URL=here)
        assert done.returncode == 0, done.stderr
    brought = manage("restore", file, DATABASE_URL=there)
    assert brought.returncode == 0, brought.stderr
    counts = []
    for url in (here, there):
        with psycopg.connect(url) as connection:
            counted = "SELECT count(*) FROM memory_message"
            counts.append(connection.execute(counted).fetchone())
    assert counts[0] == counts[1] != (0,)

    again = manage("restore", file, DATABASE_URL=there)
    assert again.returncode == 1
    assert "--replace" in again.stderr
