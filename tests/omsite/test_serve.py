import os
import signal
import socket
import subprocess
import sys

import pytest


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


def serve(port, tmp_path):
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{tmp_path / 'serve.sqlite3'}",
        "REDIS_URL": "",
    }
    return subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_a_taken_port_is_named_with_what_to_do(taken_port, tmp_path):
    server = serve(taken_port, tmp_path)

    _, errors = server.communicate(timeout=60)

    assert server.returncode == 1
    assert f"Port {taken_port} is taken" in errors


def test_ctrl_c_ends_the_server_cleanly(free_port, tmp_path):
    server = serve(free_port, tmp_path)
    assert f"http://127.0.0.1:{free_port}/" in server.stdout.readline()

    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=60)

    assert server.returncode == 0
    assert "Port" not in errors
    assert "Traceback" not in errors
