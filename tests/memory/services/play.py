"""Play the people and models of a conversation, one call at a time.

Observers here write one line a message, ``seen 7-7``, and Reflectors join such ranges, so that
every message can be found again in whatever memory made of it.
"""

import re
from datetime import UTC, datetime, timedelta

from django.db.models import F
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from memory.ask import Reply
from memory.engine.values import (
    LineKind,
    ObserverOutput,
    ObserverRequest,
    ReflectorOutput,
    WrittenLine,
)
from memory.messages import user_prompt
from memory.models import Cycle, Message
from memory.reflector import Reflected
from memory.services import observe, reflect
from memory.services.append import append
from memory.services.prepare import prepare
from memory.services.think import Thought, Thoughts

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SAID = "of what was said about the bees"
RANGE = re.compile(r"(\d+)-(\d+)")


def words(tokens):
    """Return text of about so many tokens."""
    return "bees and " * (tokens // 2)


def question(text="How are the bees?"):
    return user_prompt(text, AT)


def answer(text="They are well."):
    return ModelResponse(parts=[TextPart(text)], timestamp=AT)


def calling(*ids, tool="search"):
    return ModelResponse(
        parts=[ToolCallPart(tool, {"query": "hive"}, call_id) for call_id in ids], timestamp=AT
    )


def returning(*ids, tool="search", text="A hive.", outcome="success"):
    parts = [ToolReturnPart(tool, text, i, timestamp=AT, outcome=outcome) for i in ids]
    return ModelRequest(parts=parts, timestamp=AT)


def say(thread, *messages, at=AT):
    """Store messages and return their positions."""
    return [message.position for message in append(thread.pk, messages, at=at)]


def talk(thread, turns, *, tokens=60):
    """Store turns of a question and an answer, each message of about so many tokens."""
    for _ in range(turns):
        say(thread, question(words(tokens)), answer(words(tokens)))


def request(thread, *, prompt=None, at=AT, **options):
    """Prepare a request for the newest prompt of a thread."""
    if prompt is None:
        prompt = Message.objects.filter(thread=thread).latest("position").position
    return prepare(thread.pk, prompt_position=prompt, at=at, **options)


def reply(text="said"):
    return Reply(text=text, model="fake", input_tokens=10, output_tokens=5, cost=None)


def line(text, *cites, kind=LineKind.MEDIUM):
    return WrittenLine(kind=kind, text=text, said_at=AT, cites=cites)


def observed(*lines, task="", response="", title="", of=None):
    """Return what an Observer wrote, as the answer to the request of a claim if one is given."""
    output = ObserverOutput(tuple(lines), task, response, title)
    request = of.request if of else ObserverRequest("", ())
    return Thoughts((Thought(output),), request, reply())


def traced(claimed):
    """Observe each message of a claimed range in a line of its own."""
    numbers = claimed.request.numbers.items()
    return observed(*[line(f"seen {at}-{at} {SAID}", n) for n, at in numbers], of=claimed)


def buffer(thread, *, waiting=False, output=traced):
    """Claim and commit the observation that is due; return it, or None when none is."""
    claimed = observe.claim(thread.pk, waiting=waiting)
    return claimed and observe.commit(claimed, output(claimed))


def buffer_all(thread):
    """Observe ahead until nothing is due; return the observations."""
    return list(iter(lambda: buffer(thread), None))


def reflected(*lines):
    return Reflected(ReflectorOutput(tuple(lines)), reply())


def joined(claimed):
    """Condense claimed lines to one that holds all of their ranges."""
    numbers = claimed.request(1).numbers
    text = ranges(seen(line.text for line in numbers.values()))
    return reflected(line(f"seen {text}", *numbers))


def condense(thread, *, output=joined):
    """Claim and commit the reflection that is due; return it, or None when none is."""
    claimed = reflect.claim(thread.pk)
    return claimed and reflect.commit(claimed, output(claimed), 1)


def seen(texts):
    """Return the positions that lines say they have seen, once for each time it is said."""
    positions = []
    for text in texts:
        for first, last in RANGE.findall(text):
            positions += range(int(first), int(last) + 1)
    return positions


def ranges(positions):
    """Write positions as ranges, gaps left out."""
    parts = []
    for position in sorted(positions):
        if parts and parts[-1][1] == position - 1:
            parts[-1][1] = position
        else:
            parts.append([position, position])
    return " ".join(f"{first}-{last}" for first, last in parts)


def lapse(cycle):
    """Let the lease of a cycle run out."""
    past = F("lease_expires_at") - timedelta(hours=1)
    Cycle.objects.filter(pk=cycle.pk).update(lease_expires_at=past)


def rested(cycle):
    """Let the rest after a failed cycle be over."""
    past = F("next_attempt_at") - timedelta(hours=1)
    Cycle.objects.filter(pk=cycle.pk).update(next_attempt_at=past)


def edit(record):
    """Do to a record what every human change does to it."""
    type(record).objects.filter(pk=record.pk).update(epoch=F("epoch") + 1)
