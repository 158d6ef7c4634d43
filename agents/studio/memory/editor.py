"""Show the editor of a line: what is typed, what changing it costs, and what it collides with."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F

from agents import words
from agents.studio.memory.asked import Asked
from agents.studio.memory.reading import Reading, place_of
from memory.models import Line
from memory.services.change import LONGEST_REASON, LONGEST_TEXT, Stale

KINDS = (
    (Line.Kind.HIGH.value, "High"),
    (Line.Kind.MEDIUM.value, "Medium"),
    (Line.Kind.LOW.value, "Low"),
    (Line.Kind.DONE.value, "Done"),
    (Line.Kind.PLAIN.value, "None"),
)


@dataclass(frozen=True)
class Typed:
    """Hold what somebody typed in an editor."""

    text: str
    kind: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Conflict:
    """Show that a line is not what an editor was opened on: nothing of either text is lost.

    ``onto`` is the line that stands there now; empty when none is visible.
    """

    sentence: str
    yours: str
    theirs: str
    onto: str
    seen: int

    @classmethod
    def of(cls, stale: Stale, latest: int) -> Conflict:
        """Return what a refused edit collided with."""
        current = stale.current
        onto = str(current.pk) if current else ""
        return cls(str(stale), stale.yours, stale.theirs or "", onto, latest)


@dataclass(frozen=True)
class Editor:
    """Show the editor of one line."""

    line: Line
    typed: Typed
    seen: int
    cost: str
    moved: str
    close: str
    conflict: Conflict | None = None
    refusal: str = ""
    kinds: tuple[tuple[str, str], ...] = KINDS
    longest: int = LONGEST_TEXT
    longest_reason: int = LONGEST_REASON


def editor_of(
    reading: Reading, *, typed: Typed | None = None, refusal: str = "", stale: Stale | None = None
) -> Editor | None:
    """Return the editor that is open; None when none is, or the line is of another memory."""
    line = _line(reading)
    if line is None:
        return None
    return Editor(
        line=line,
        typed=typed or Typed(line.text, line.kind),
        seen=reading.latest,
        cost=cost_of(reading, line),
        moved=_moved(reading, line),
        close=_closed(reading.asked, line),
        conflict=Conflict.of(stale, reading.latest) if stale else None,
        refusal=refusal,
    )


def _line(reading: Reading) -> Line | None:
    if reading.asked.edit is None or reading.record is None or not reading.is_latest:
        return None
    rows = Line.objects.filter(observation__record=reading.record, since__isnull=False)
    rows = rows.annotate(of_thread=F("observation__thread"), of_kind=F("observation__kind"))
    return rows.filter(pk=reading.asked.edit).first()


def _moved(reading: Reading, line: Line) -> str:
    """Say that the line was changed while its editor is open."""
    if line.until is None:
        return ""
    if any(place_of(each) == place_of(line) for each in reading.lines):
        return "Somebody changed this line meanwhile. What you type is kept; saving shows both."
    return "This line is out of sight by now. What you type is kept; saving lets you choose."


def _closed(asked: Asked, line: Line) -> str:
    return f"{asked.link(edit=None)}#line-{line.pk}"


def cost_of(reading: Reading, line: Line | None) -> str:
    """Say what changing a line, or adding one, does to the provider's prompt cache."""
    behind = reading.tokens_from(line) if line is not None else 0
    raw = reading.scene.extent.pending_tokens
    total = words.tokens(behind + raw)
    where = f"{words.tokens(behind)} of memory from here on and " if behind else ""
    return (
        f"Prompt cache: the request changes from here on, so about {total} tokens "
        f"({where}{words.tokens(raw)} of raw messages) are read anew once, then cached again."
    )
