"""The processes of a production server, started one by one, to be stopped, killed and replaced."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from omsite.processes import BEAT, OBSERVE
from tests.fleet.people import Person
from tests.fleet.private import free_port, until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
WORKER = OBSERVE.command.replace("--queues observe", "--queues observe,reflect")


@dataclass
class Running:
    """Hold one process and how to start it again."""

    name: str
    command: list[str]
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def lives(self) -> bool:
        """Tell whether it runs."""
        return self.process is not None and self.process.poll() is None


@dataclass
class Site:
    """Run our processes on given servers; what they log is in files of a folder."""

    folder: Path
    environment: dict[str, str]
    running: list[Running] = field(default_factory=list)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of manage.py to its end."""
        return self.run("manage.py", *arguments)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program to its end."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def prepare(self, *arguments: str) -> list[Person]:
        """Make the tables and a world in them; return its people."""
        for command in (("manage.py", "migrate", "-v0"), ("-m", "tests.fleet.world", *arguments)):
            ended = self.run(*command)
            if ended.returncode:
                raise RuntimeError(f"{command} failed:\n{ended.stderr}")
        return [Person(**each) for each in json.loads(ended.stdout)]

    def web(self) -> Running:
        """Start a web process; it need not be ready yet."""
        port = free_port()
        return self._begin(
            Running("web", [sys.executable, "manage.py", "serve", "--port", str(port)], port)
        )

    def worker(self, command: str = WORKER) -> Running:
        """Start a worker; it need not be ready yet."""
        name = f"worker{len(self.running)}"
        words = shlex.split(command.replace("@%h", f"-{name}@%h"))
        return self._begin(Running(name, [sys.executable, "-m", *words]))

    def beat(self) -> Running:
        """Start the process that has workers sweep."""
        words = shlex.split(BEAT.command.format(folder=self.folder))
        return self._begin(Running("beat", [sys.executable, "-m", *words]))

    def _begin(self, running: Running) -> Running:
        self.running.append(running)
        self.start(running)
        return running

    def start(self, running: Running) -> None:
        """Start a process, or start it again."""
        with (self.folder / f"{running.name}-{running.port}.log").open("ab") as log:
            running.process = subprocess.Popen(
                running.command, cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def ready(self, *webs: Running) -> None:
        """Wait until web processes can serve."""
        for web in webs:
            until(lambda web=web: _answers(web), f"{web.name} serves", seconds=START_SECONDS)

    def signal(self, running: Running, what: signal.Signals) -> None:
        """Send a process a signal and wait for its end."""
        if running.process is not None:
            running.process.send_signal(what)
            running.process.wait(timeout=START_SECONDS)

    def kill(self, running: Running) -> None:
        """Kill a process at whatever it is doing."""
        self.signal(running, signal.SIGKILL)

    def logs(self) -> str:
        """Return all that was logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """Kill what still runs."""
        for each in self.running:
            if each.lives:
                self.kill(each)


def _answers(web: Running) -> bool:
    if not web.lives:
        raise RuntimeError(f"{web.name} ended before it was ready.")
    try:
        with urlopen(f"{web.url}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def site(database: str, redis: str = "", **more: str) -> Iterator[Site]:
    """Give a site on a database and, unless it is embedded, on Redis with Celery."""
    with TemporaryDirectory(prefix="omsite-site-") as folder:
        environment = {
            **os.environ,
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "OM_DISPATCHER": "celery" if redis else "embedded",
            "OM_HTTPS": "false",
            "OM_MODEL": "offline",
            "OM_OFFLINE_DELAY": "0.05",
            "OM_LEASE_SECONDS": "4",
            "OM_SENDS_PER_MINUTE": "0",
            "OM_TURNS_AT_ONCE": "0",
            "OM_SOCKETS_PER_USER": "0",
            "SECRET_KEY": "only for tests, but long enough to be one",
            "MEDIA_ROOT": f"{folder}/media",
            "STATIC_ROOT": f"{folder}/static",
            **more,
        }
        made = Site(Path(folder), environment)
        try:
            yield made
        finally:
            made.end()


def pick(people: Sequence[Person]) -> list[tuple[Person, str]]:
    """Return every thread with its person."""
    return [(person, thread) for person in people for thread in person.threads]
