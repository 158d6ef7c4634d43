"""Bring back the database of an earlier state, in SQLite or in PostgreSQL."""

import gzip
import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from hashlib import sha256

import psycopg

from memory.models.media import path_of
from tests.upgrade.make import DUMP, ROOT

PICTURE = b"A picture of an oak table"


class Previous:
    """Hold a database as an earlier state left it, and run this state's commands on it."""

    def __init__(self, database, folder):
        self.database, self._media = database, folder / "media"
        self.dump = sqlite3.connect(folder / "dump.sqlite3")
        self.dump.executescript(gzip.decompress(DUMP.read_bytes()).decode())
        file = self._media / path_of(sha256(PICTURE).hexdigest())
        file.parent.mkdir(parents=True)
        file.write_bytes(PICTURE)

    def environment(self):
        return {
            **os.environ,
            "DATABASE_URL": self.database.url,
            "MEDIA_ROOT": str(self._media),
            "REDIS_URL": "",
            "OM_MODEL": "offline",
        }

    def manage(self, *args):
        """Run a command of manage.py; return its code and what it said."""
        ended = subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=ROOT, env=self.environment(), capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        return ended.returncode, ended.stdout + ended.stderr

    @contextmanager
    def migrating(self):
        """Yield what migrates to a target; it returns when that is done."""
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.upgrade.steps"], cwd=ROOT, env=self.environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

        def migrate(target):
            child.stdin.write(f"{target}\n")
            child.stdin.flush()
            assert child.stdout.readline().strip() == target

        try:
            yield migrate
        finally:
            child.communicate(timeout=60)

    def load(self):
        """Put the rows where this state's commands look for them."""
        if self.database.name == "SQLite":
            target = sqlite3.connect(self.database.url.removeprefix("sqlite:///"))
            self.dump.backup(target)
            target.execute("PRAGMA journal_mode=WAL")
            target.close()
            return
        with self.migrating() as migrate:
            for app, name in self.applied():
                migrate(f"{app}.{name}")
        with psycopg.connect(self.database.url) as target:
            self._copy(target)

    def applied(self):
        """Return the last migration of each app that the earlier state had."""
        return self.dump.execute(
            "SELECT app, max(name) FROM django_migrations GROUP BY app ORDER BY app"
        ).fetchall()

    def _copy(self, target):
        # Tables come in any order: what they name is there once all are.
        target.execute("SET session_replication_role = replica")
        target.execute("SET timezone = 'UTC'")
        tables = self.dump.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        for (table,) in tables.fetchall():
            if table != "django_migrations":
                self._copy_table(target, table)

    def _copy_table(self, target, table):
        types = dict(
            target.execute(
                "SELECT column_name, data_type FROM information_schema.columns "
                "WHERE table_name = %s",
                [table],
            ).fetchall()
        )
        found = self.dump.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in found.description]
        truths = [types[name] == "boolean" for name in names]
        rows = [
            [
                bool(v) if truth and v is not None else v
                for v, truth in zip(row, truths, strict=True)
            ]
            for row in found
        ]
        columns = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join(["%s"] * len(names))
        with target.cursor() as cursor:
            cursor.executemany(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', rows)
        if types.get("id") in ("bigint", "integer"):
            target.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM \"{table}\""
            )
