"""A client that does not read, over a real connection."""

import socket
import subprocess
import sys
import time

import pytest

FRAME = 100_000
FRAMES = 400
#: What the two ends of a connection on one machine hold between them, with room to spare.
BUFFERS = 12_000_000

SERVER = """
import asyncio, sys
import twisted.internet.asyncioreactor
twisted.internet.asyncioreactor.install(asyncio.new_event_loop())
from omsite.server import Server

async def application(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    for number in range(FRAMES):
        await send({"type": "websocket.send", "text": "x" * FRAME})
        print(number + 1, flush=True)
    print("done", flush=True)
    await receive()

Server(application, endpoints=["tcp:port=PORT:interface=127.0.0.1"],
       ready_callable=lambda: print("ready", flush=True)).run()
"""

HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.fixture
def served(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = SERVER.replace("PORT", str(port)).replace("FRAMES", str(FRAMES))
    code = code.replace("FRAME", str(FRAME))
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=out)
        try:
            wait_for(lambda: "ready" in log.read_text())
            yield port, lambda: log.read_text().split()
        finally:
            process.kill()
            process.wait()


def wait_for(found, seconds=30):
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until, "It did not come."
        time.sleep(0.05)


def connected(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.sendall(HANDSHAKE.encode())
    return client


def read(client, size):
    while size > 0:
        size -= len(client.recv(1_000_000))


def test_who_sends_waits_for_a_client_that_does_not_read(served):
    port, log = served
    with connected(port) as client:
        wait_for(lambda: len(log()) > 1)
        before = None
        while before != (before := len(log())):
            time.sleep(0.5)
        assert before * FRAME < BUFFERS, "the server holds what nobody reads"
        read(client, FRAMES * FRAME)
        wait_for(lambda: "done" in log())


def test_who_waits_is_let_go_when_the_connection_is_lost(served):
    port, log = served
    with connected(port):
        wait_for(lambda: len(log()) > 1)
    wait_for(lambda: "done" in log())
