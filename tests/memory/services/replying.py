"""Say what models reply, and look at what is left."""

from asgiref.sync import sync_to_async

from memory.models import Cursor, Line, Observation, Revision
from tests.fakes import Models
from tests.memory.services import play
from tests.memory.services.oracle import violations

talk = sync_to_async(play.talk)
request = sync_to_async(play.request)
wrong = sync_to_async(violations)
PROSE = "I looked at the messages and there is a lot to say about them."
REPEATED = "The bees are well and the hive is full of honey. " * 200


def saying(text):
    return Models(observer=lambda _: text, reflector=lambda _: text)


def raising(error):
    def fail(_):
        raise error

    return Models(observer=fail, reflector=fail)


def is_sentence(text):
    return (
        text[:1].isupper() and text.endswith(".") and "\n" not in text and "Traceback" not in text
    )


async def untouched():
    counts = [await m.objects.acount() for m in (Observation, Line, Cursor, Revision)]
    return counts == [0, 0, 0, 0]
