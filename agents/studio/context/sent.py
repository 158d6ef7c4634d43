"""Read the requests that were sent, from what was kept of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.db.models.fields.json import KT
from django.http import Http404
from pydantic_ai.messages import ModelRequest

from agents.models import RequestSnapshot, Turn
from agents.services.told import KINDS, Told, request_hash
from agents.studio.context.inspected import Inspected, Part, parts_of, said_in, texts_of
from agents.studio.context.predictions import Prediction, recalled
from memory.models import Message, Revision
from memory.services.request import LEFT_OUT, Block, Prepared

MOST_LISTED = 12
_NO_MESSAGE = ModelRequest(parts=[])


def requests_of(thread_id: UUID) -> QuerySet[RequestSnapshot]:
    """Select the requests of a thread, the latest first."""
    rows = RequestSnapshot.objects.filter(turn__thread=thread_id).select_related(
        "turn__thread__resource"
    )
    return rows.order_by("-turn__number", "-step")


def snapshot_of(thread_id: UUID, number: int, step: int | None = None) -> RequestSnapshot:
    """Return one request of a turn, its last if no step is given. Raises Http404."""
    rows = requests_of(thread_id).filter(turn__number=number)
    found = rows.first() if step is None else rows.filter(step=step).first()
    if found is None:
        raise Http404("Of this turn no such request was kept.")
    return found


def key_of(snapshot: RequestSnapshot) -> str:
    """Name a request by the number of its turn and its step."""
    return f"{snapshot.turn.number}.{snapshot.step}"


def name_of(snapshot: RequestSnapshot) -> str:
    """Return what pages call a request: its turn, and its step from the second on."""
    step = f" · step {snapshot.step}" if snapshot.step > 1 else ""
    return f"#{snapshot.turn.number}{step}"


def url_of(snapshot: RequestSnapshot) -> str:
    """Return where a request is shown."""
    turn = snapshot.turn
    return f"/context/{turn.thread_id}/requests/{turn.number}/{snapshot.step}/"


def inspected_of(snapshot: RequestSnapshot) -> Inspected:
    """Return a request that was sent, block by block, in two statements."""
    thread_id, blocks = snapshot.turn.thread_id, snapshot.blocks
    return Inspected(
        key=key_of(snapshot),
        parts=parts_of(blocks, texts_of(blocks), said_in(thread_id, blocks)),
        total=snapshot.total,
        hash=snapshot.hash,
        revision=snapshot.revision,
    )


@dataclass(frozen=True)
class Reported:
    """Hold what the provider said a request took."""

    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    position: int


@dataclass(frozen=True)
class Verdict:
    """Say how far something can be trusted: ``look`` is good, bad or unknown."""

    look: str
    words: str


class Sent:
    """Read one request that was sent, and what stands beside it."""

    def __init__(self, snapshot: RequestSnapshot) -> None:
        self.snapshot = snapshot
        self.turn = snapshot.turn

    @cached_property
    def inspected(self) -> Inspected:
        """Return the request block by block."""
        return inspected_of(self.snapshot)

    @cached_property
    def steps(self) -> Sequence[int]:
        """Return the steps of the turn of which a request was kept."""
        return list(self.turn.requests.order_by("step").values_list("step", flat=True))

    @cached_property
    def before(self) -> RequestSnapshot | None:
        """Return the request sent before this one."""
        return _beside(self.snapshot, older=True)

    @cached_property
    def after(self) -> RequestSnapshot | None:
        """Return the request sent after this one."""
        return _beside(self.snapshot, older=False)

    @cached_property
    def reported(self) -> Reported | None:
        """Return what the provider reported with the answer to this request, if it did."""
        turn, step = self.turn, self.snapshot.step
        if turn.first_position is None:
            return None
        answers = Message.objects.filter(
            thread=turn.thread_id,
            kind=Message.Kind.RESPONSE,
            position__gt=turn.first_position,
            **({} if turn.last_position is None else {"position__lte": turn.last_position}),
        ).order_by("position")
        usage = {name: KT(f"payload__usage__{name}") for name in _USED}
        names = ("model", *(f"of_{name}" for name in _USED), "position")
        found = answers.annotate(**{f"of_{name}": used for name, used in usage.items()})
        row = next(iter(found.values_list(*names)[step - 1 : step]), None)
        if row is None or not int(row[1] or 0):
            return None
        return Reported(row[0], int(row[1]), int(row[2] or 0), int(row[3] or 0), row[4])

    def trust(self) -> Verdict:
        """Say whether the page shows what was sent, by the hash that was kept then."""
        parts, kept = self.inspected.parts, self.snapshot.hash
        if any(part.text is None for part in parts if not part.of_messages):
            return Verdict("unknown", "Not all texts of this request are kept any more.")
        if any(said.erased for part in parts for said in part.said):
            return Verdict("unknown", "Messages of this request were erased since.")
        if kept in _hashes(parts):
            return Verdict("good", f"Hash {kept[:8]} · identical to what was sent")
        return Verdict("bad", f"Hash {kept[:8]} was sent, but this adds up to another one.")

    def foreseen(self) -> Verdict | None:
        """Say whether the request was as it was foreseen last; None for a later step."""
        if self.snapshot.step > 1:
            return None
        prediction = recalled(self.turn.thread_id, self.turn.first_position)
        if prediction is None:
            return Verdict("unknown", "Nobody looked at a prediction of this request.")
        zone = ZoneInfo(self.turn.thread.resource.time_zone)
        at = datetime.fromisoformat(prediction.at).astimezone(zone)
        if prediction.hash == self.snapshot.hash:
            return Verdict("good", f"As predicted at {at:%H:%M:%S}.")
        why = "; ".join(self._differences(prediction)) or "its texts differ"
        return Verdict("bad", f"Predicted otherwise at {at:%H:%M:%S}: {why}.")

    def _differences(self, prediction: Prediction) -> Iterator[str]:
        changed = {"first": prediction.revision, "last": self.snapshot.revision}
        if changed["first"] != changed["last"]:
            yield _between(self.turn, **changed)
        foreseen = {_identity(block) for block in prediction.blocks}
        sent = {_identity(block) for block in self.snapshot.blocks}
        for kind in dict.fromkeys(kind for kind, *_ in sorted(foreseen ^ sent)):
            if kind not in ("memory", "message"):
                yield f"{_KINDS.get(kind, kind)} changed"


_USED = ("input_tokens", "output_tokens", "cache_read_tokens")
_KINDS = {
    "instructions": "the instructions",
    "tools": "the tools",
    "others": "what other conversations say",
    "reminder": "the reminder",
    "prompt": "the prompt",
    LEFT_OUT: "what is left out",
}
_CAUSES = {
    "activate": "a chunk was activated",
    "observe": "messages were observed",
    "reflect": "a reflection was shown",
    "edit": "a line was edited",
    "note": "a note was added",
    "pin": "a line was pinned",
    "forget": "a line was forgotten",
    "restore": "memory was restored",
    "clear": "memory was cleared",
    "erase": "something was erased",
    "config": "options were changed",
    "scope": "the scope was changed",
    "fork": "the conversation was forked",
    "import": "memory was imported",
}


def _identity(block: Any) -> tuple[str, str]:
    return block["kind"], str(block.get("hash") or (block.get("first"), block.get("last")))


def _between(turn: Turn, *, first: int, last: int) -> str:
    """Say what changed memory after one revision, up to another."""
    low, high = sorted((first, last))
    causes = (
        Revision.objects.filter(
            record__resource=turn.thread.resource_id, number__gt=low, number__lte=high
        )
        .filter(Q(record__thread=turn.thread_id) | Q(record__thread__isnull=True))
        .order_by("number")
        .values_list("cause", flat=True)
    )
    said = dict.fromkeys(_CAUSES.get(cause, cause) for cause in causes)
    between = " and ".join(said) or "memory changed"
    return f"{between} in between (revision {first} → {last})"


def _hashes(parts: Sequence[Part]) -> set[str]:
    """Return the hashes that a request of these parts may have been kept under."""
    always = [Told(part.kind, part.text or "", part.source) for part in parts if part.kind in KINDS]
    prepared = Prepared(tuple(_blocks(part for part in parts if part.kind not in KINDS)))
    return {request_hash(always, prepared), *([] if always else [prepared.hash])}


def _blocks(parts: Iterator[Part]) -> Iterator[Block]:
    for part in parts:
        if not part.of_messages:
            yield Block(part.kind, _NO_MESSAGE, part.tokens, part.source, text=part.text or "")
        for said in part.said:
            yield Block(part.kind, _NO_MESSAGE, said.tokens, part.source, said.position)


def _beside(snapshot: RequestSnapshot, *, older: bool) -> RequestSnapshot | None:
    rows = requests_of(snapshot.turn.thread_id)
    here = (snapshot.turn.number, snapshot.step)
    if older:
        earlier = rows.filter(turn__number__lt=here[0]) | rows.filter(
            turn__number=here[0], step__lt=here[1]
        )
        return earlier.first()
    later = rows.filter(turn__number__gt=here[0]) | rows.filter(
        turn__number=here[0], step__gt=here[1]
    )
    return later.order_by("turn__number", "step").first()
