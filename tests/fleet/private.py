"""PostgreSQL and Redis servers of one's own, on free ports, to be stopped, killed and started."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

SERVER_ACCOUNT = "postgres"
PATIENCE = 60.0
GLANCE = 0.02


class Missing(Exception):
    """Say which program a test needs and this machine has not."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(true: Callable[[], Any], what: str, *, seconds: float = PATIENCE) -> Any:
    """Wait for a condition and return what it says. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited {seconds} s in vain until {what}.")
        time.sleep(GLANCE)
    return found


def program(name: str) -> str:
    """Return where a program is, in PostgreSQL's own folders too. Raises Missing."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = shutil.which(name) or next(map(str, places), None)
    if found is None:
        raise Missing(f"{name} is not installed.")
    return found


class Redis:
    """Run a Redis server that keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._program = program("redis-server")
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, empty, and return once it answers."""
        options = ["--port", str(self.port), "--save", "", "--appendonly", "no"]
        options += ["--bind", "127.0.0.1", "--dir", str(self._folder)]
        self._process = subprocess.Popen([self._program, *options], stdout=subprocess.DEVNULL)
        until(self.answers, "Redis answers")

    @property
    def lives(self) -> bool:
        """Tell whether it was started and not stopped since."""
        return self._process is not None

    def answers(self) -> bool:
        """Tell whether it is there."""
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it answer nobody for a while, without refusing anybody."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)
            until(self.answers, "Redis answers")

    def stop(self) -> None:
        """End it at once; nothing it held is kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Postgres:
    """Run a PostgreSQL cluster with one empty database."""

    def __init__(self, folder: Path) -> None:
        self._initdb, self._postgres = program("initdb"), program("postgres")
        self._folder = folder / "cluster"
        self.port = free_port()
        self.url = f"postgresql://{SERVER_ACCOUNT}@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None
        self._folder.mkdir()
        if self._account:
            shutil.chown(self._folder, **self._account)
        made = [self._initdb, "-D", str(self._folder), "-U", SERVER_ACCOUNT, "-A", "trust"]
        self._run([*made, "--no-sync", "--encoding=UTF8", "--locale=C"])

    @property
    def _account(self) -> dict[str, str]:
        """Name who runs it: PostgreSQL refuses to be run by root."""
        if os.geteuid():
            return {}
        try:
            pwd.getpwnam(SERVER_ACCOUNT)
        except KeyError:
            raise Missing("root cannot run PostgreSQL without an account “postgres”.") from None
        return {"user": SERVER_ACCOUNT, "group": SERVER_ACCOUNT}

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._account)

    def start(self) -> None:
        """Start it and return once it answers."""
        # Nobody pulls the plug on a test: what a killed server wrote is in the system's cache.
        options = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-p", str(self.port)]
        options += ["-c", "unix_socket_directories=", "-c", "max_connections=100"]
        self._process = subprocess.Popen(
            [self._postgres, "-D", str(self._folder), *options],
            cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._account,
        )  # fmt: skip
        until(self.answers, "PostgreSQL answers")

    @property
    def lives(self) -> bool:
        """Tell whether it was started and not stopped since."""
        return self._process is not None

    def answers(self) -> bool:
        """Tell whether it is there."""
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it, by default at once, as in a crash: connections are cut, logs replayed later."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=PATIENCE)
            self._process = None

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return what a statement finds."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement, values or None).fetchall()  # type: ignore[arg-type]


@contextmanager
def servers() -> Iterator[tuple[Postgres, Redis]]:
    """Give servers that run, and take them away. Raises Missing."""
    with tempfile.TemporaryDirectory(prefix="omsite-servers-") as name:
        folder = Path(name)
        # The account that runs PostgreSQL must be able to come through.
        folder.chmod(0o755)
        postgres, broker = Postgres(folder), Redis(folder)
        try:
            postgres.start()
            broker.start()
            yield postgres, broker
        finally:
            postgres.stop()
            broker.stop()
