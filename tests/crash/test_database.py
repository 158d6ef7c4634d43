import signal
import sqlite3
import subprocess
import sys

import pytest

from tests.crash.database import Locked, Sqlite

HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("PRAGMA locking_mode = exclusive")
held.execute("BEGIN EXCLUSIVE")
held.execute("INSERT INTO told VALUES (2)")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_database_that_a_stopped_process_has_for_itself_is_locked_until_that_is_dead(tmp_path):
    path = tmp_path / "held.sqlite3"
    with sqlite3.connect(path) as made:
        made.execute("PRAGMA journal_mode = wal")
        made.execute("CREATE TABLE told (number)")
        made.execute("INSERT INTO told VALUES (1)")
    made.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    watched = Sqlite(path, patience=0.1)
    try:
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(Locked):
            watched.rows("SELECT number FROM told")
    finally:
        holder.kill()
        holder.communicate()
    assert watched.rows("SELECT number FROM told") == [(1,)]
