import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from urllib.request import urlopen

import pytest

from tests.keyboard import hear_ctrl_c

BUSY_SECONDS = 20  # as in the settings of SQLite
SIGNED_IN = b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid=%s\r\n\r\n" % (b"a" * 32)


@pytest.fixture
def taken_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(port, tmp_path):
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{tmp_path / 'serve.sqlite3'}",
        "REDIS_URL": "",
    }
    with subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=hear_ctrl_c,
    ) as server:
        try:
            yield server
        finally:
            server.kill()


def test_a_taken_port_is_named_with_what_to_do(taken_port, tmp_path):
    with serving(taken_port, tmp_path) as server:
        _, errors = server.communicate(timeout=60)

    assert server.returncode == 1
    assert f"Port {taken_port} is taken" in errors


def test_ctrl_c_ends_the_server_cleanly(free_port, tmp_path):
    with serving(free_port, tmp_path) as server:
        assert f"http://127.0.0.1:{free_port}/" in server.stdout.readline()

        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)

    assert server.returncode == 0
    assert "Port" not in errors
    assert "Traceback" not in errors


def test_a_thread_that_waits_for_the_database_does_not_hold_up_the_end(free_port, tmp_path):
    with closing(sqlite3.connect(tmp_path / "serve.sqlite3")) as database:
        database.execute("BEGIN EXCLUSIVE")
        with serving(free_port, tmp_path) as server:
            assert f"http://127.0.0.1:{free_port}/" in server.stdout.readline()
            with closing(socket.create_connection(("127.0.0.1", free_port))) as waiting:
                waiting.sendall(SIGNED_IN)
                urlopen(f"http://127.0.0.1:{free_port}/healthz").close()

                server.send_signal(signal.SIGTERM)
                _, errors = server.communicate(timeout=BUSY_SECONDS / 2)

    assert server.returncode == 0
    assert "Work still ran" in errors
