"""Make the database of an earlier state anew: python -m tests.upgrade.make [REVISION].

That state's own code makes it, from its files in git, in a folder of its own. What is written is
the SQL of a SQLite file, with memory in both scopes and every kind of change in its history.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
DUMP = Path(__file__).parent / "previous.sql.gz"
#: The first state with the whole Studio, the JSON API, labs and bundles. Nothing was released.
PREVIOUS = "73a99a0"

LIFE = """
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from agents.services.fork import fork
from agents.services.send import send
from agents.services.turn import run_turns
from agents.tokens import make
from memory.media import keep
from memory.models import Line, MemoryRecord, Thread
from memory.services.operate import observe_now, reflect_now
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.note import note
from memory.services.pin import pin
ada = User.objects.get(username="ada")
thread = Thread.objects.get(title="Kitchen refit")
record = MemoryRecord.objects.get(thread=thread)
async_to_sync(observe_now)(thread.pk)
lines = list(Line.objects.filter(observation__record=record, until=None, since__gt=0)[:4])
note(record.pk, "The plumber comes on Fridays", author=ada)
pin([lines[0].pk], author=ada)
edit(lines[1].pk, text="The worktop is ash, 38 mm thick", author=ada)
forget([lines[2].pk], author=ada)
fork(thread.pk, 100)
async_to_sync(reflect_now)(thread.pk)
send(thread.pk, "Which wood is the worktop made of?", author=ada)
async_to_sync(run_turns)(thread.pk)
send(thread.pk, "Is this still here after the upgrade?", author=ada)
make(ada, "Backup")
keep(b"A picture of an oak table", media_type="text/plain", name="oak.txt")
"""


def said(path: Path, name: str) -> str:
    """Write a short recording for the team's shared memory, and return its path."""
    rows = []
    for n in range(24):
        at = f"2026-03-02T10:{n:02}:00Z"
        who = "user" if n % 2 == 0 else "assistant"
        text = f"{name} says: " + f"The deadline of part {n} is day {n + 3}. " * 6
        rows.append({"at": at, who: text})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def make(revision: str, folder: Path) -> Path:
    """Live a life with the code of a revision, and return the database it left."""
    files = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
    source = folder / "source"
    source.mkdir()
    subprocess.run(["tar", "x", "-C", source], input=files.stdout, check=True)
    path = folder / "previous.sqlite3"
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{path}",
        "MEDIA_ROOT": str(folder / "media"),
        "REDIS_URL": "",
        "OM_MODEL": "offline",
        "OM_OFFLINE_DELAY": "0",
    }

    def manage(*words: str) -> None:
        command = [sys.executable, "manage.py", *words]
        subprocess.run(command, cwd=source, env=environment, check=True)

    manage("migrate", "-v0")
    manage("demo")
    manage("shell", "-v0", "-c", SHARED)
    for name in ("Ada", "Ben"):
        recording = said(folder / f"{name}.jsonl", name)
        manage("om", "replay", recording, "--resource", "team", "--thread", name)
    manage("shell", "-v0", "-c", LIFE)
    manage("om", "verify")
    return path


SHARED = """
from agents.models import AgentProfile
from memory.models import Resource
AgentProfile.objects.update(memory_options={"message_tokens": 600, "observation_tokens": 300})
Resource.objects.filter(key="team").update(scope="resource")
"""


def dump(path: Path) -> str:
    """Return the SQL that makes a SQLite file anew, without what nobody needs of it."""
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM django_session")
    connection.commit()
    return "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        text = dump(make(sys.argv[1] if sys.argv[1:] else PREVIOUS, Path(made)))
    DUMP.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{DUMP}: {DUMP.stat().st_size:,} bytes")
