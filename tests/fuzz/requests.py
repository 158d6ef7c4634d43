"""Compare the request a model received with the raw tables, not through the engine."""

import asyncio
import re
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory.models import MemoryRecord, Revision

from . import sql
from .atoms import read, read_all, write
from .models import SAID

OTHERS = re.compile(r"<other-conversations>.*?</other-conversations>", re.S)

VISIBLE = """
SELECT l.text FROM memory_line l JOIN memory_observation o ON o.id = l.observation_id
WHERE o.record_id = %s AND l.since <= %s AND (l.until IS NULL OR l.until > %s)
"""
MESSAGES = """
SELECT position, kind, payload FROM memory_message
WHERE thread_id = %s AND position > %s ORDER BY position
"""
OBSERVED = """
SELECT max(last_position) FROM memory_observation
WHERE record_id = %s AND thread_id = %s AND kind = 'observation' AND since <= %s
"""
RECORD = """
SELECT r.id FROM memory_memoryrecord r JOIN memory_thread t ON t.id = %s
WHERE r.closed_at IS NULL
AND (r.thread_id = %s OR (r.thread_id IS NULL AND r.resource_id = t.resource_id))
ORDER BY r.thread_id IS NULL LIMIT 1
"""
SENT = "SELECT blocks FROM agents_requestsnapshot WHERE turn_id = %s AND step = %s"

under_way = ContextVar("under_way", default=None)


@dataclass
class Answering:
    """Hold a turn under way, its memory, and the steps whose request was refused as too long.

    ``asked_at`` is when its model was asked last, by the loop's clock.
    """

    running: object
    memory: object = None
    asked_at: float = 0.0
    refused: list = field(default_factory=list)

    def in_step(self):
        """Return how often the request of the step under way was refused."""
        return self.refused.count(self.memory.step)

    def unanswered(self):
        """Return for how many seconds the model has kept silent since it was asked."""
        return round(asyncio.get_running_loop().time() - self.asked_at, 3)


def texts(messages):
    """Yield everything that the parts of messages say."""
    for message in messages:
        for part in message.parts:
            match part:
                case UserPromptPart(content=str(text)) | TextPart(content=text):
                    yield text
                case UserPromptPart():
                    yield from (item for item in part.content if isinstance(item, str))
                case ToolCallPart():
                    yield part.args_as_json_str()
                case ToolReturnPart():
                    yield part.model_response_str()
                case RetryPromptPart():
                    yield part.model_response()


def loose_ends(messages):
    """Return the calls without a result and the results without a call, each in its place."""
    found, waiting = [], {}
    for message in messages:
        if isinstance(message, ModelResponse):
            found += [f"the call {call} has no result" for call in waiting]
            waiting = {p.tool_call_id: p for p in message.parts if isinstance(p, ToolCallPart)}
            continue
        for part in message.parts:
            answers = isinstance(part, ToolReturnPart | RetryPromptPart) and part.tool_name
            if answers and waiting.pop(part.tool_call_id, None) is None:
                found.append(f"the result {part.tool_call_id} has no call before it")
    return found + [f"the call {call} has no result" for call in waiting]


def visible(world, record_id, revision):
    """Return the atoms of the lines visible at a revision."""
    at = record_id, revision
    if at not in world.visible or not world.alone:
        found = sql.rows(VISIBLE, record_id, revision, revision)
        world.visible[at] = read_all(text for (text,) in found)
    return world.visible[at]


def messages(world, thread_id):
    """Return each message of a thread by position: its kind, and the atoms it says."""
    known = world.messages[thread_id]
    if not world.alone:
        known.clear()
    for position, kind, payload in sql.rows(MESSAGES, thread_id, max(known, default=0)):
        known[position] = kind, read_payload(sql.parsed(payload))
    return known


def observed_through(record_id, thread_id, revision):
    """Return the position up to which a thread's messages are covered at a revision."""
    return sql.value(OBSERVED, record_id, thread_id, revision) or 0


def wanted(world, record_id, thread_id, revision, *, through, prompt, newest, left=()):
    """Return the atoms that a request must hold, from the rows; ``left`` is left out by name."""
    said = Counter(visible(world, record_id, revision))
    for position, (_, atoms) in messages(world, thread_id).items():
        if position <= newest and (position > through or position == prompt):
            said.update(atoms if position not in left else ())
    return said


def read_payload(payload):
    """Return the atoms of a stored message."""
    said = Counter()
    for part in payload["parts"]:
        for name in ("content", "args"):
            value = part.get(name)
            said.update(read(value if isinstance(value, str) else str(value or "")))
    return said


def check(world, answering, gate):
    """Compare one request of a turn with the tables; note in the world what is wrong."""
    running, memory = answering.running, answering.memory
    thread_id, prepared = running.turn.thread_id, memory.prepared
    where = f"{world.name(thread_id)}, turn {running.turn.number}, step {memory.step}"
    for loose in loose_ends(gate.messages):
        world.broken("pairs", f"In {where}, {loose}.")
    if not isinstance(gate.messages[-1], ModelRequest):
        world.broken("pairs", f"In {where}, an answer comes last.")
    said = list(texts(gate.messages))
    got = read_all(OTHERS.sub("", text) for text in said)
    for atom in read(running.turn.prompt):
        if not any(str(atom) in text and SAID not in text for text in said):
            world.broken("turns", f"In {where}, the prompt {atom} is missing.")
    record = record_of(thread_id)
    if record is None or _gone_since(world, record, prepared):
        return
    newest = max(messages(world, thread_id)) if world.alone else prepared.blocks[-1].position
    prompt = running.turn.first_position
    left = left_out(running.turn, memory.step)
    through = observed_through(record, thread_id, prepared.revision)
    at = {"through": through, "prompt": prompt, "newest": newest}
    must = wanted(world, record, thread_id, prepared.revision, left=left, **at)
    # The step that was just made stays in sight when it is observed meanwhile.
    must += (got - must) & step_of(world, thread_id, prompt, newest)
    wrong = [*_compared(got, must), *_others(world, said, record, thread_id, prepared.revision)]
    if left:
        wrong += _overflown(world, answering, left, **at)
    if _gone_since(world, record, prepared):
        return
    for sentence in wrong:
        world.broken("coverage", f"In {where} as of revision {prepared.revision}, {sentence}")


def left_out(turn, step):
    """Return the positions that are recorded as left out of a request."""
    found = sql.rows(SENT, turn.pk, step)
    runs = [block for (blocks,) in found for block in sql.parsed(blocks)]
    runs = [block for block in runs if block["kind"] == "left_out"]
    return {p for run in runs for p in range(run["first"], run["last"] + 1)}


def _overflown(world, answering, left, *, through, prompt, newest):
    """Yield what is wrong with what was left out: the oldest first, never prompt or last step."""
    world.happened["left_out"] += 1
    if not answering.refused and "context_tokens" not in world.options:
        yield "messages are left out though nothing overflows."
    known = sorted(messages(world, answering.running.turn.thread_id))
    raw = [p for p in known if through < p <= newest and p != prompt]
    gone = [p for p in raw if p in left]
    if prompt in left or gone != raw[: len(gone)] or (prompt < newest and newest in left):
        yield f"{gone} of {raw} are left out."


def _others(world, said, record_id, thread_id, revision):
    """Yield what is wrong with what is told of others: what lies raw there, none of it twice."""
    told = read_all(block for text in said for block in OTHERS.findall(text))
    if not told:
        return
    world.happened["other_conversations"] += 1
    raw = Counter()
    for other in world.threads():
        if other.pk != thread_id:
            through = observed_through(record_id, other.pk, revision)
            for position, (_, atoms) in messages(world, other.pk).items():
                if position > through:
                    raw.update(atoms)
    if told - raw:
        yield f"{_listed(told - raw)} is told as if raw elsewhere."


def step_of(world, thread_id, prompt, newest):
    """Return the atoms of a turn's last answer with what followed it."""
    said = Counter()
    for position, (kind, atoms) in sorted(messages(world, thread_id).items(), reverse=True):
        if prompt < position <= newest:
            said.update(atoms)
            if kind == "response":
                break
    return said


def record_of(thread_id):
    """Return the id of the open record a thread's memory is in."""
    found = sql.value(RECORD, thread_id, thread_id)
    return None if found is None else sql.key(found)


def _gone_since(world, record_id, prepared):
    """Tell whether rows the request was made of may be gone, or in another record, already."""
    if world.alone:
        return False
    since = Revision.objects.filter(
        record=record_id, number__gt=prepared.revision, cause__in=("erase", "scope")
    )
    is_open = MemoryRecord.objects.filter(pk=record_id, closed_at=None).exists()
    moved = prepared.view is not None and prepared.view.record.pk != record_id
    return moved or not is_open or since.exists()


def _compared(got, must):
    """Yield how what reached the Actor differs from what should have."""
    if missing := must - got:
        yield f"{_listed(missing)} did not reach the Actor."
    if doubled := got - must:
        yield f"{_listed(doubled)} came once too often."


def _listed(atoms):
    return write(atoms)
