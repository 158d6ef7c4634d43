"""A loopback server that plays a model provider, one scripted answer after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Say:
    """Answer in words, streamed piece by piece."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Call:
    """Answer with one tool call."""

    tool: str
    arguments: dict[str, Any]
    id: str = "call_1"


@dataclass(frozen=True)
class Refuse:
    """Answer with an HTTP error whose body quotes the caller's key, as some providers do."""

    status: int


@dataclass(frozen=True)
class Hang:
    """Take the request and never answer it."""


@dataclass(frozen=True)
class Cut:
    """Begin to stream an answer and drop the connection."""

    say: Say


@dataclass(frozen=True)
class Hear:
    """Hold one request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Dialect(Protocol):
    """Write answers the way one provider's API does."""

    name: str
    model: str
    key_variable: str

    def environment(self, address: str) -> dict[str, str]:
        """Return the environment that sends its SDK to this address."""

    def streams(self, heard: Hear) -> bool:
        """Tell whether the request asks for a stream."""

    def events(self, answer: Say | Call) -> list[bytes]:
        """Return the frames of a streamed answer."""

    def body(self, answer: Say | Call) -> dict[str, Any]:
        """Return an answer in one piece."""

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Return the body of an error."""


@dataclass
class Wire:
    """Hold a running server's script and what it heard."""

    dialect: Dialect
    script: list[Say | Call | Refuse | Hang | Cut]
    heard: list[Hear] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    address: str = ""
    server: ThreadingHTTPServer | None = None

    def open(self) -> None:
        """Listen on a free port of 127.0.0.1."""

        class Handler(_Handler):
            script_of = self

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Stop listening and let go of every request that hangs."""
        self.released.set()
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()


@contextmanager
def serve(wire: Wire) -> Iterator[Wire]:
    """Serve a script until the block ends."""
    wire.open()
    try:
        yield wire
    finally:
        wire.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script_of: Wire

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        heard = Hear(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        self.script_of.heard.append(heard)
        answer = self.script_of.script.pop(0)
        dialect = self.script_of.dialect
        match answer:
            case Refuse(status):
                key = heard.headers.get("authorization") or heard.headers.get("x-api-key")
                message = f"Refused {key or heard.headers.get('x-goog-api-key')}"
                self._whole(status, dialect.error(status, message))
            case Hang():
                self.script_of.released.wait()
                self.close_connection = True
            case Cut(say):
                frames = dialect.events(say)
                self._chunks(frames[: len(frames) // 2], ending=b"")
                self.close_connection = True
            case _ if dialect.streams(heard):
                self._chunks(dialect.events(answer), ending=b"0\r\n\r\n")
            case _:
                self._whole(200, dialect.body(answer))

    def _whole(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _chunks(self, frames: list[bytes], *, ending: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", EVENTS)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for frame in frames:
            self.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
            self.wfile.flush()
        self.wfile.write(ending)

    def log_message(self, *args: object) -> None:
        pass
