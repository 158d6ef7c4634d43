"""Read the list of conversations, and work on several."""

import re

from memory.services.look import look
from tests.memory.services import play

SCRIPT = {"HX-Request": "true"}


def titles(client, **query):
    html = client.get("/chat/", query).content.decode()
    return re.findall(r"data-open-row>(.*?)</a>", html)


def bulk(client, action, *threads, headers=SCRIPT, **more):
    data = {"action": action, "thread": [thread.pk for thread in threads], **more}
    return client.post("/chat/bulk", data, headers=headers)


def observed(thread):
    """Remember three turns of a thread and show what was observed."""
    play.talk(thread, 6)
    play.buffer_all(thread)
    play.talk(thread, 1)
    play.request(thread)
    assert look(thread.pk).lines
    return thread
