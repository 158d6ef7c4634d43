"""Measure what memory keeps of recorded conversations, through the whole pipeline."""

from __future__ import annotations

import asyncio
import json as json_format
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError

from memory.models import Thread
from memory.quality import MemoryLine, Remembered, Scores, score, shuffled
from memory.recordings import Recording, RecordingError, read

from .measure import Measured, measure
from .progress import Log, Terminal
from .table import write_json

HELP = "Replay conversations with the offline model and score what the Actor sees after them."
COLUMNS = {
    "name": "conversation",
    "support": "SUP",
    "explicit": "X",
    "grounded": "GRD",
    "ratio": "ratio",
    "real_ratio": "real ratio",
    "cited": "cited",
    "control": "control",
    "questions": "questions",
    "dated": "dated",
    "lines": "lines",
    "raw_messages": "raw",
    "cycles": "cycles",
}
LEGEND = """
SUP      how much of the answers the lines resting on the evidence still hold, per cent
X        questions about time whose date is printed there, per cent
GRD      how much of what lines say the messages they cite say too, per cent
ratio    conversation to memory in estimated tokens; real ratio: in o200k tokens, as sent
cited    messages a line cites, the median
control  SUP when each question gets the answer of another one: must stay low
raw      messages the Actor still sees whole; they are among the lines
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("data", type=Path, help="JSON lines, or the JSON of LoCoMo or LongMemEval")
    parser.add_argument(
        "--ratio",
        type=_ratio,
        default=10.0,
        metavar="X",
        help="how many times smaller than the conversation memory is to be (default 10)",
    )
    parser.add_argument("--conversation", metavar="KEY", help="only this one of the file's")
    parser.add_argument("--lines", type=Path, metavar="FILE", help="write what is seen, as JSONL")
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(
    out: TextIO,
    *,
    data: Path,
    ratio: float,
    conversation: str | None,
    lines: Path | None,
    json: bool,
) -> int:
    """Measure and write the figures. Raises CommandError."""
    recordings = _recordings(data, conversation)
    _refuse_used_database()
    measured = [_measured(out, recording, ratio, quiet=json) for recording in recordings]
    if lines is not None:
        _write_lines(lines, measured)
    rows, notes = rows_of(measured), notes_on(measured)
    if json:
        document = {"wanted_ratio": ratio, "conversations": rows[:-1], "total": rows[-1]}
        write_json(out, {**document, "notes": notes})
        return 0
    _write_rows(out, rows)
    out.write(LEGEND + "".join(f"{note}\n" for note in notes))
    return 0


def rows_of(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the figures of each conversation, and at last those of all together."""
    memories = [each.remembered for each in measured]
    controls = shuffled(memories)
    rows = [
        _row(each.recording.key, score([each.remembered]), score([control]), [each])
        for each, control in zip(measured, controls, strict=True)
    ]
    return [*rows, _row("all", score(memories), score(controls), measured)]


def notes_on(measured: Sequence[Measured]) -> list[str]:
    """Return what could not be measured, and why."""
    memories = [each.remembered for each in measured]
    asked = sum(len(memory.questions) for memory in memories)
    if not asked:
        return ["No questions are asked: SUP, X and the control cannot be measured."]
    scores = score(memories)
    left_out = asked - scores.questions
    found = {
        f"{left_out} of {asked} questions have no answer to look for and are left out.": (left_out),
        "No question wants a date: X cannot be measured.": not scores.dated,
        "No two questions can swap answers: there is no control.": (
            score(shuffled(memories)).support is None
        ),
    }
    return [note for note, holds in found.items() if holds]


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0
    if not 1 < ratio < float("inf"):
        raise ArgumentTypeError(f'"{text}" is no ratio; write a number above 1, such as 10')
    return ratio


def _recordings(path: Path, key: str | None) -> list[Recording]:
    try:
        recordings = read(path)
    except RecordingError as error:
        raise CommandError(str(error)) from error
    chosen = [recording for recording in recordings if key in (None, recording.key)]
    if not chosen:
        keys = ", ".join(recording.key for recording in recordings)
        raise CommandError(f"{path} holds no conversation {key}; it holds {keys}.")
    return chosen


def _refuse_used_database() -> None:
    """Refuse to put replayed conversations among somebody's own, and to write unsafely there."""
    if Thread.objects.exists():
        raise CommandError(
            "This database holds conversations; measuring needs an empty one of its own. "
            "`make quality DATA=FILE` makes one and removes it."
        )


def _measured(out: TextIO, recording: Recording, ratio: float, *, quiet: bool) -> Measured:
    if quiet:
        return asyncio.run(measure(recording, ratio=ratio))
    report = (Terminal if out.isatty() else Log)(out, recording.title)
    try:
        return asyncio.run(measure(recording, ratio=ratio, report=report))
    finally:
        report.end()


def _row(name: str, scores: Scores, control: Scores, of: Sequence[Measured]) -> dict[str, Any]:
    raw, sent = sum(each.raw_tokens for each in of), sum(each.sent_tokens for each in of)
    return {
        "name": name,
        "support": scores.support,
        "explicit": scores.explicit,
        "grounded": scores.grounded,
        "ratio": scores.ratio,
        "real_ratio": raw / sent if sent else None,
        "cited": scores.cited,
        "control": control.support,
        "questions": scores.questions,
        "dated": scores.dated,
        "lines": scores.lines,
        "raw_messages": sum(each.raw_messages for each in of),
        "cycles": sum(each.cycles for each in of),
        "raw_tokens": raw,
        "sent_tokens": sent,
    }


def _write_rows(out: TextIO, rows: Iterable[dict[str, Any]]) -> None:
    shown = [[*COLUMNS.values()], *([_cell(row[key]) for key in COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for name, *cells in shown:
        figures = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        out.write("  ".join([name.ljust(widths[0]), *figures]) + "\n")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _write_lines(path: Path, measured: Iterable[Measured]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for each in measured:
                for row in _line_rows(each.recording.key, each.remembered):
                    file.write(json_format.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error


def _line_rows(key: str, remembered: Remembered) -> Iterator[dict[str, Any]]:
    """Yield each line with the number of its sitting and the turns it cites, in their order."""
    sittings = list(dict.fromkeys(turn.session for turn in remembered.turns))
    order = {turn.id: at for at, turn in enumerate(remembered.turns)}
    for line in remembered.lines:
        yield {
            "conv": key,
            "text": line.text,
            "date": str(line.date),
            "sess": _sitting_number(line, remembered, sittings),
            "ids": sorted(line.sources, key=order.__getitem__),
        }


def _sitting_number(line: MemoryLine, remembered: Remembered, sittings: Sequence[str]) -> int:
    sitting = remembered.session_of(line.sources)
    return sittings.index(sitting) + 1 if sitting in sittings else 0
