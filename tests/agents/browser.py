"""Speak to websockets as a browser does."""

import json

from channels.testing import WebsocketCommunicator
from django.test import Client

from omsite.asgi import application

HERE = b"http://localhost"


class Socket:
    """Speak to a thread's websocket as a browser does."""

    def __init__(self, thread_id, session="", origin=HERE, application=application):
        headers = [(b"origin", origin), (b"host", b"localhost")]
        if session:
            headers.append((b"cookie", f"sessionid={session}".encode()))
        self.seen = ""
        self.wire = WebsocketCommunicator(application, f"/ws/chat/{thread_id}/", headers=headers)

    async def __aenter__(self):
        self.accepted, self.code = await self.wire.connect(timeout=5)
        return self

    async def __aexit__(self, *error):
        await self.wire.disconnect()

    async def say(self, kind, **fields):
        await self.wire.send_to(text_data=json.dumps({"type": kind, **fields}))

    async def hear(self, kind):
        """Return the next frame of a kind."""
        while True:
            frame = json.loads(await self.wire.receive_from(timeout=5))
            self.seen += frame.get("content", "")
            if frame["type"] == kind:
                return frame

    async def hear_of(self, *texts):
        """Return what was rendered until now, once all texts have been in it."""
        while not all(text in self.seen for text in texts):
            await self.hear("render")
        return self.seen

    async def closed(self):
        """Return the code the server closes with."""
        while True:
            event = await self.wire.receive_output(timeout=5)
            if event["type"] == "websocket.close":
                return event["code"]


def session_of(user):
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value
