"""Write down what a record shows: as it is stored, or as the Actor reads it.

The text comes in *pieces*: one for each line, however many lines of text it takes, and one for
each header between them. Joined by line ends they are the text again, so that who shows them
piece by piece loses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory.engine import values
from memory.engine.listing import Listing
from memory.models import Line
from memory.models.state import State, read_state

from .kept import Shown
from .look import View, line_value, options_in, visible_lines
from .request import BODY, memory_text

_BULLET = re.compile(r"(?:  )?\* ")
_INDENT = "    "


@dataclass(frozen=True)
class Piece:
    """Hold some lines of a text: those of one line of memory, or of what stands around them."""

    text: str
    line: Line | None = None

    @property
    def height(self) -> int:
        """Return how many lines of text it takes."""
        return self.text.count("\n") + 1


def as_stored(lines: Sequence[Line], zone: ZoneInfo) -> list[Piece]:
    """Return lines under their days, saying what is stored and nothing else."""
    listing = Listing(zone)
    for line in lines:
        listing.add(line_value(line))
    return list(_pieces(listing.text, lines))


def as_seen(thread_id: UUID, number: int, at: datetime) -> list[Piece]:
    """Return the memory block the Actor is sent in a thread, as of a revision and a time.

    It is written by the function that writes the request. Nothing is returned when nothing is
    shown. Raises Thread.DoesNotExist.
    """
    state = read_state(thread_id)
    if state.record is None:
        return []
    lines = visible_lines(state.record.pk, number)
    text, _ = memory_text(_view(state, lines, number), at)
    before, body, after = _around(text)
    framed = [Piece(part) for part in before], [Piece(part) for part in after]
    return [*framed[0], *_pieces(body, lines), *framed[1]]


def text_of(pieces: Sequence[Piece]) -> str:
    """Return the text that pieces are of."""
    return "\n".join(piece.text for piece in pieces)


def _view(state: State, lines: Sequence[Line], number: int) -> View:
    assert state.record is not None
    return View(
        thread=state.thread,
        record=state.record,
        options=options_in(state),
        zone=ZoneInfo(state.thread.resource.time_zone),
        observed_through=state.observed_through,
        buffered_through=state.buffered_through,
        hints=values.Hints(),
        extracted={},
        actor_model=state.actor_model,
        memory=Shown(number, state.record.epoch, tuple(lines)),
    )


def _around(text: str) -> tuple[list[str], str, list[str]]:
    """Return what stands before the listed lines, the list, and what stands after it."""
    start = text.find(BODY)
    if start < 0:
        return ([text] if text else []), "", []
    start += len(BODY)
    end = text.rfind("\n</", 0, text.rfind("\n</"))
    return text[: start - 1].split("\n"), text[start:end], text[end + 1 :].split("\n")


def _pieces(text: str, lines: Sequence[Line]) -> Iterator[Piece]:
    """Return a listing in pieces; a bullet begins each line, what is indented or blank goes on."""
    following = iter(lines)
    piece: Piece | None = None
    for written in text.split("\n") if text else ():
        if piece is not None and piece.line and (not written or written.startswith(_INDENT)):
            piece = replace(piece, text=f"{piece.text}\n{written}")
            continue
        if piece is not None:
            yield piece
        piece = Piece(written, next(following) if _BULLET.match(written) else None)
    if piece is not None:
        yield piece
