"""People at a production server: they read pages, send messages and hold sockets open."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from uuid import UUID, uuid4

CSRF = "c" * 32


@dataclass(frozen=True)
class Answer:
    """Hold what a server answered; status 0 where none did."""

    status: int
    text: str = ""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Person:
    """Be signed in, and talk in some threads."""

    session: str
    threads: list[str]

    @property
    def cookies(self) -> str:
        """Return what their browser sends of cookies."""
        return f"sessionid={self.session}; csrftoken={CSRF}"

    def get(self, url: str, path: str, **query: str) -> Answer:
        """Open an address."""
        return self._ask("GET", url, f"{path}?{urlencode(query)}" if query else path)

    def post(self, url: str, path: str, **fields: str) -> Answer:
        """Send a form, as the script of a page does."""
        return self._ask("POST", url, path, urlencode(fields))

    def send(self, url: str, thread: str, text: str, key: UUID | None = None) -> Answer:
        """Send a message; with the same key, again."""
        return self.post(url, f"/chat/{thread}/send", text=text, key=str(key or uuid4()))

    def retry(self, url: str, thread: str, turn: int) -> Answer:
        """Press “Try again” at a turn."""
        return self.post(url, f"/chat/{thread}/turns/{turn}/retry")

    def page(self, url: str, thread: str) -> Answer:
        """Open a conversation."""
        return self.get(url, f"/chat/{thread}/")

    def regions(self, url: str, thread: str, only: str = "") -> Answer:
        """Ask what a page without a socket asks every ten seconds."""
        return self.get(url, f"/chat/{thread}/regions", **({"only": only} if only else {}))

    def _ask(self, method: str, url: str, path: str, body: str | None = None) -> Answer:
        headers = {"Cookie": self.cookies}
        if body is not None:
            form = "application/x-www-form-urlencoded"
            headers |= {"HX-Request": "true", "X-CSRFToken": CSRF, "Content-Type": form}
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode(), dict(answer.getheaders()))
        except (OSError, http.client.HTTPException):
            return Answer(0)
        finally:
            connection.close()
