"""Begin turns: from a waiting prompt to a message and the first request made of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pydantic_ai import CancellationToken
from pydantic_ai.messages import ModelMessage

from memory.messages import user_prompt
from memory.models.record import RecordMoved
from memory.models.state import State
from memory.models.swift import FromNow, columns, insert, now_in_sql, read_row, swap, width
from memory.publish import publish
from memory.services.append import append_within
from memory.services.early import early_of, gap_before
from memory.services.kept import Raw
from memory.services.look import look_with, read, view_of
from memory.services.prepare import Prepared, plain, prepare_from
from memory.services.texts import keep_texts

from ..events import TurnStarted
from ..models import AgentProfile, RequestSnapshot, Turn, lease
from .attach import contents
from .close import NOTHING, Used, close_lapsed
from .told import Told, request_hash, told

logger = logging.getLogger(__name__)


@dataclass
class Running:
    """Hold a turn under way in this process: what it has said so far, and how to stop it.

    ``first`` is its first request, if it could be prepared with the prompt; ``after`` the
    position of the newest message stored.
    """

    turn: Turn
    zone: ZoneInfo
    prompt: ModelMessage
    at: datetime
    after: int
    profile: AgentProfile | None = None
    first: Prepared | None = None
    prepared: Prepared | None = None
    since: list[Raw] = field(default_factory=list)
    text: str = ""
    saved: str = ""
    used: Used = NOTHING
    stop: CancellationToken = field(default_factory=CancellationToken)

    @property
    def told(self) -> Sequence[Told]:
        """Return what the agent is told besides messages, which stays throughout the turn."""
        view = self.first.view if self.first is not None else None
        return told(self.profile, view.options if view is not None else None)

    def fence(self) -> None:
        """Renew the lease, first of all writes. Raises TurnLost."""
        self.turn.renew(draft_text="")

    def record(self, step: int, prepared: Prepared, *, again: bool = False) -> None:
        """Keep what a request consists of; ``again`` when the step was sent otherwise before."""
        snapshot(self.turn, step, prepared, self.told, again=again)
        self.prepared, self.since = prepared, []

    def stored(self, message: Raw) -> None:
        """Forget what a step had said so far: it is a message now."""
        self.text = self.saved = ""
        self.after = message.position
        self.since.append(message)


def begin(thread_id: UUID, *, at: datetime | None = None) -> Running | None:
    """Start the lowest waiting turn: store its prompt and prepare its first request, at once.

    All in one transaction, so that the prompt is in memory before any model is asked. Returns
    None when nothing waits or another turn is running.
    """
    at = at or timezone.now()
    for found in _open(thread_id):
        if found.turn.status == Turn.Status.WAITING:
            return _start(found, at)
        if not found.is_lapsed or not close_lapsed(thread_id):
            return None
    return None


_OPEN = """
SELECT {turn}, u.lease_expires_at < {now}, a.id, {profile}
FROM agents_turn u
JOIN memory_thread t ON t.id = u.thread_id
LEFT JOIN agents_agentprofile a ON a.slug = t.agent
WHERE u.thread_id = %s AND u.status IN ('running', 'waiting')
ORDER BY u.status, u.number LIMIT 2
"""


@dataclass(frozen=True)
class _Open:
    """Hold a turn that runs or waits, whether its lease is past, and its agent if there is one."""

    turn: Turn
    is_lapsed: bool
    profile: AgentProfile | None


def _open(thread_id: UUID) -> Sequence[_Open]:
    """Return the turn that runs, if one does, and the lowest that waits, with its agent.

    Written by hand: every turn begins and ends with it, and composing it anew cost more than
    asking it.
    """
    with connection.cursor() as cursor:
        key = Turn._meta.get_field("thread").get_db_prep_value(thread_id, connection)
        cursor.execute(_open_sql(connection.vendor), [key])
        return [_opened(row) for row in cursor.fetchall()]


@lru_cache
def _open_sql(vendor: str) -> str:
    return _OPEN.format(
        turn=columns(Turn, "u"), now=now_in_sql(), profile=columns(AgentProfile, "a")
    )


def _opened(row: Sequence[Any]) -> _Open:
    lapsed, agent = row[width(Turn) : width(Turn) + 2]
    found = None if agent is None else read_row(AgentProfile, row, at=width(Turn) + 2)
    return _Open(read_row(Turn, row), bool(lapsed), found)


def _start(found: _Open, at: datetime, *, prepares: bool = True) -> Running | None:
    try:
        with transaction.atomic():
            running = _started(found, at, prepares=prepares)
    except IntegrityError:
        return None  # Another turn of the thread is running; its end starts the next.
    except RecordMoved:
        return _start(found, at, prepares=False)  # Edited or erased meanwhile; prepared once begun.
    except NotPrepared:
        # Memory must not keep a turn from starting; the request is prepared once more.
        logger.exception("The first request of turn %s was not prepared.", found.turn.pk)
        return _start(found, at, prepares=False)
    return running


class NotPrepared(Exception):
    """Tell that the first request could not be made; the turn has not begun."""


def _started(found: _Open, at: datetime, *, prepares: bool) -> Running | None:
    turn = found.turn
    state = read(turn.thread_id)
    turn.first_position = state.thread.last_position + 1
    if not _take(turn):
        return None
    new, model = _prompt(turn, state, at), state.actor_model
    prompt = append_within(turn.thread_id, [new], at=at, model=model)[0]
    if prompt.position != turn.first_position:
        # Somebody else appended since the thread was read.
        turn.first_position = prompt.position
        Turn.objects.filter(pk=turn.pk).update(first_position=prompt.position)
    publish(TurnStarted(thread=turn.thread_id, turn=turn.number))
    running = _running(found, state, prompt, at)
    if prepares:
        _prepare(running, state, prompt)
    return running


def _prompt(turn: Turn, state: State, at: datetime) -> ModelMessage:
    return user_prompt(
        turn.prompt, at, attachments=contents(turn.attachments), gap=gap_before(state, at)
    )


def _running(found: _Open, state: State, prompt: Raw, at: datetime) -> Running:
    return Running(
        turn=found.turn,
        zone=ZoneInfo(state.thread.resource.time_zone),
        prompt=prompt.message,
        at=at,
        after=prompt.position,
        profile=found.profile,
    )


def _prepare(running: Running, state: State, prompt: Raw) -> None:
    """Prepare the first request as of what was read before the prompt was stored."""
    try:
        prepared = running.first = _first(state, prompt, running)
        if prepared is not None and not prepared.wait_seconds:
            running.record(1, prepared)
    except RecordMoved:
        raise
    except Exception as error:
        # Whatever fails in memory: who begins the turn logs it and begins without.
        raise NotPrepared from error


def _first(state: State, prompt: Raw, running: Running) -> Prepared | None:
    if not state.thread.remembers:
        return plain(state.thread.pk)
    view = view_of(state)
    if view is None:
        return None
    return prepare_from(
        look_with(view, [prompt]),
        prompt_position=prompt.position,
        at=running.at,
        early=early_of(view, running.at),
        overhead=sum(each.tokens for each in told(running.profile, view.options)),
    )


def _take(turn: Turn) -> bool:
    turn.lease_token = uuid4()
    changes = {
        "status": Turn.Status.RUNNING,
        "lease_token": turn.lease_token,
        "lease_expires_at": FromNow(lease()),
        "started_at": FromNow(),
        "first_position": turn.first_position,
    }
    return swap(Turn, {"pk": turn.pk, "status": Turn.Status.WAITING}, changes) is not None


def snapshot(
    turn: Turn,
    step: int,
    prepared: Prepared,
    besides: Sequence[Told] = (),
    *,
    again: bool = False,
) -> RequestSnapshot:
    """Record what a request consists of; what it says is kept once, under its hash.

    ``besides`` is what the agent is told with every request. With ``again`` it takes the place
    of what was recorded of this step. Raises RecordMoved when memory was edited or erased since
    it was read: what is gone must not be recorded anew.
    """
    always = sum(each.tokens for each in besides)
    fields: dict[str, Any] = {
        "revision": prepared.revision,
        "blocks": [*(each.summary() for each in besides), *prepared.summary()],
        "total": always + prepared.tokens,
        "cacheable": always + prepared.cacheable,
        "hash": request_hash(besides, prepared),
    }
    row = RequestSnapshot(turn=turn, step=step, **fields)
    texts = [*(each.text for each in besides), *prepared.texts]
    record = prepared.view.record if prepared.view is not None else None
    # The record first: so does who erases, before any request or text goes.
    if again:
        if record is not None:
            record.hold()
        turn.requests.filter(step=step).delete()
    if record is None:
        insert(row)
        keep_texts(texts, of=turn.thread_id)
    else:
        record.insert_beside(row)
        keep_texts(texts, of=(record.pk, record.epoch))
    return row
