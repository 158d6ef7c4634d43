"""Name what happens in labs."""

from __future__ import annotations

from typing import Literal

from memory.events import Event


class LabMoved(Event):
    """Tell the pages of a lab, through its threads, that its run log moved."""

    kind: Literal["lab.moved"] = "lab.moved"
