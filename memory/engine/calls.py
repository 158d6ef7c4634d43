"""Tell each tool call once, however often its messages repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory.engine.values import Message, Part, PartKind

_OUTCOMES = frozenset({PartKind.RESULT, PartKind.FAILURE})

Place = tuple[int, int]


@dataclass(slots=True)
class _Call:
    """Hold where a call and its outcome are told, and the arguments given last."""

    call: Place | None
    arguments: str = ""
    outcome: Place | None = None


def told_once(messages: Sequence[Message]) -> Iterator[tuple[Message, tuple[Part, ...]]]:
    """Yield each message with the parts to tell.

    A call is told where it first stands, with the arguments given last; its outcome where it
    last stands. A call whose id was answered before is a new one: some models count theirs
    anew in every turn.
    """
    calls = list(_calls(messages))
    kept = {place for call in calls for place in (call.call, call.outcome) if place}
    arguments = {call.call: call.arguments for call in calls if call.call}
    for row, message in enumerate(messages):
        yield (
            message,
            tuple(
                _with_arguments(part, arguments.get((row, column)))
                for column, part in enumerate(message.parts)
                if not _is_of_a_call(part) or (row, column) in kept
            ),
        )


def _calls(messages: Sequence[Message]) -> Iterator[_Call]:
    latest: dict[str, _Call] = {}
    for row, message in enumerate(messages):
        for column, part in enumerate(message.parts):
            if not _is_of_a_call(part):
                continue
            known = latest.get(part.call_id)
            if part.kind in _OUTCOMES:
                if known is None:
                    known = latest[part.call_id] = _Call(None)
                    yield known
                known.outcome = (row, column)
            elif known is None or known.outcome:
                latest[part.call_id] = _Call((row, column), part.text)
                yield latest[part.call_id]
            elif part.text.strip():
                known.arguments = part.text


def _is_of_a_call(part: Part) -> bool:
    return bool(part.call_id) and (part.kind is PartKind.CALL or part.kind in _OUTCOMES)


def _with_arguments(part: Part, arguments: str | None) -> Part:
    return part if arguments is None else replace(part, text=arguments)
