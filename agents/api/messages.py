"""Answer for messages and turns: read them, send, follow, stop and try again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import File, Header, Query, Router, Schema, UploadedFile
from ninja.responses import Status

from agents import intents
from agents.access import Right, author
from agents.models import Turn
from agents.services import attach
from agents.services.refusal import LimitReached
from agents.sockets import counted, sockets
from memory.models import Message

from .paging import Asked, Page, number, page, read
from .problems import Problem
from .reach import thread_for, turn_for
from .shapes import (
    MessageOut,
    RequestOut,
    TurnOut,
    answered,
    message_out,
    request_out,
    turn_out,
)
from .stream import follow

router = Router(tags=["Messages"])

USED = "This Idempotency-Key was sent with another message already."


class FileOut(Schema):
    """Describe a file that is stored and not sent yet."""

    token: str
    name: str
    media_type: str
    size: int


class Said(Schema):
    """Say what to send; ``files`` are tokens that uploading files to the conversation returned."""

    text: str = ""
    files: list[str] = []


@router.get(
    "/threads/{uuid:thread_id}/messages", response=Page[MessageOut], summary="List messages"
)
def messages(
    request: HttpRequest,
    thread_id: UUID,
    asked: Query[Asked],
    newest_first: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    """List the messages of a conversation, the oldest first; `whole` adds their payloads."""
    thread_for(request, thread_id)
    rows = Message.objects.filter(thread=thread_id)
    after = read(asked.cursor, number)
    if after is not None:
        rows = (
            rows.filter(position__lt=after[0])
            if newest_first
            else rows.filter(position__gt=after[0])
        )
    found = list(rows.order_by("-position" if newest_first else "position")[: asked.limit + 1])
    shape = lambda row: message_out(row, whole=whole)  # noqa: E731
    return page(found, asked.limit, shape, lambda row: (row.position,))


@router.get(
    "/threads/{uuid:thread_id}/messages/{int:position}",
    response=MessageOut,
    summary="Read a message",
)
def message(request: HttpRequest, thread_id: UUID, position: int) -> dict[str, Any]:
    """Return one message with its payload."""
    thread_for(request, thread_id)
    found = Message.objects.within(thread_id, position, position).first()
    if found is None:
        raise Http404
    return message_out(found, whole=True)


@router.post(
    "/threads/{uuid:thread_id}/messages",
    response={201: TurnOut, 200: TurnOut},
    summary="Send a message",
)
def send(
    request: HttpRequest,
    thread_id: UUID,
    given: Said,
    stream: bool = False,
    idempotency_key: Annotated[str, Header(alias="Idempotency-Key", max_length=200)] = "",
) -> Any:
    """Send a message; the answer is the turn it makes.

    With `stream=true` the answer is a stream of server-sent events that ends with the turn. The
    same `Idempotency-Key` makes one turn however often it is sent.
    """
    thread_for(request, thread_id, Right.CHAT)
    turn_key = _key(request, idempotency_key)
    known = Turn.objects.filter(key=turn_key).first()
    if known is not None and (known.thread_id, known.prompt) != (thread_id, given.text):
        raise Problem(409, USED)
    if stream:
        _room(request)
    turn = known or intents.say(
        thread_id, given.text, key=turn_key, author=author(request), files=given.files
    )
    if stream:
        return _streamed(request, turn)
    return Status(200 if known else 201, turn_out(turn, _text(turn)))


def _key(request: HttpRequest, given: str) -> UUID:
    # Keys are each person's own: what two of them choose must not meet.
    return uuid5(NAMESPACE_URL, f"{author(request).pk} {given}") if given else uuid4()


def _text(turn: Turn) -> str:
    return texts_of([turn])[turn.pk]


def texts_of(turns: Iterable[Turn]) -> dict[UUID, str]:
    """Return what was answered in some turns, in one statement."""
    turns = list(turns)
    wanted = Q(pk__in=[])
    for turn in turns:
        if turn.first_position is not None:
            last = {} if turn.last_position is None else {"position__lte": turn.last_position}
            wanted |= Q(thread=turn.thread_id, position__gt=turn.first_position, **last)
    rows = Message.objects.filter(wanted, kind=Message.Kind.RESPONSE).order_by("position")
    said: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for thread_id, position, payload in rows.values_list("thread", "position", "payload"):
        for turn in turns:
            if turn.thread_id == thread_id and _holds(turn, position):
                said[turn.pk].append(payload)
    return {turn.pk: answered(said[turn.pk]) for turn in turns}


def _holds(turn: Turn, position: int) -> bool:
    first, last = turn.first_position, turn.last_position
    return first is not None and first < position and (last is None or position <= last)


def _room(request: HttpRequest) -> None:
    """Raise LimitReached when whoever asks has as many pages and streams open as may be."""
    if (reached := sockets.full(author(request).pk)) is not None:
        raise LimitReached(reached)


def _streamed(request: HttpRequest, turn: Turn) -> HttpResponse | StreamingHttpResponse:
    events = counted(author(request).pk, follow(turn.thread_id, turn.number))
    response = StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"  # Else a proxy would hand the answer out at its end.
    return response


@router.post("/threads/{uuid:thread_id}/files", response={201: FileOut}, summary="Attach a file")
def attach_file(
    request: HttpRequest, thread_id: UUID, file: File[UploadedFile]
) -> Status[dict[str, Any]]:
    """Store a file; send its `token` among the `files` of a message within a day."""
    thread_for(request, thread_id, Right.CHAT)
    taken = attach.take(file)
    token = attach.token_of(thread_id, taken)
    shown = {name: taken[name] for name in ("name", "media_type", "size")}
    return Status(201, {"token": token, **shown})


@router.get("/threads/{uuid:thread_id}/turns", response=Page[TurnOut], summary="List turns")
def turns(request: HttpRequest, thread_id: UUID, asked: Query[Asked]) -> dict[str, Any]:
    """List the turns of a conversation, the newest first."""
    thread_for(request, thread_id)
    rows = Turn.objects.filter(thread=thread_id).order_by("-number")
    after = read(asked.cursor, number)
    if after is not None:
        rows = rows.filter(number__lt=after[0])
    found = list(rows[: asked.limit + 1])
    texts = texts_of(found[: asked.limit])
    return page(
        found, asked.limit, lambda row: turn_out(row, texts[row.pk]), lambda row: (row.number,)
    )


@router.get(
    "/threads/{uuid:thread_id}/turns/{int:turn_number}", response=TurnOut, summary="Read a turn"
)
def turn(request: HttpRequest, thread_id: UUID, turn_number: int) -> dict[str, Any]:
    """Return one turn with what was answered so far."""
    found = turn_for(request, thread_id, turn_number)
    return turn_out(found, _text(found))


@router.get("/threads/{uuid:thread_id}/turns/{int:turn_number}/stream", summary="Follow a turn")
def stream(request: HttpRequest, thread_id: UUID, turn_number: int) -> Any:
    """Follow a turn as server-sent events, from its beginning even if it has ended."""
    found = turn_for(request, thread_id, turn_number)
    _room(request)
    return _streamed(request, found)


@router.get(
    "/threads/{uuid:thread_id}/turns/{int:turn_number}/requests",
    response=list[RequestOut],
    summary="Read the requests of a turn",
)
def requests(request: HttpRequest, thread_id: UUID, turn_number: int) -> list[dict[str, Any]]:
    """Return what each model request of a turn held, block by block."""
    found = turn_for(request, thread_id, turn_number)
    return [request_out(row) for row in found.requests.order_by("step")]


@router.post(
    "/threads/{uuid:thread_id}/turns/{int:turn_number}/stop",
    response=TurnOut,
    summary="Stop a turn",
)
def stop(request: HttpRequest, thread_id: UUID, turn_number: int) -> dict[str, Any]:
    """Stop an answer under way, or take back a message that waits."""
    found = turn_for(request, thread_id, turn_number, Right.CHAT)
    if found.status == Turn.Status.WAITING:
        intents.withdraw(thread_id, turn_number)
    elif found.status == Turn.Status.RUNNING:
        intents.stop(thread_id)
    else:
        raise Problem(409, f"Turn {turn_number} has ended already: it is {found.status}.")
    found.refresh_from_db()
    return turn_out(found, _text(found))


@router.post(
    "/threads/{uuid:thread_id}/turns/{int:turn_number}/retry",
    response={201: TurnOut},
    summary="Try a turn again",
)
def retry(request: HttpRequest, thread_id: UUID, turn_number: int) -> Status[dict[str, Any]]:
    """Send the message of a turn that brought no answer again, once."""
    turn_for(request, thread_id, turn_number, Right.CHAT)
    made = intents.retry(thread_id, turn_number, author=author(request))
    return Status(201, turn_out(made, _text(made)))
