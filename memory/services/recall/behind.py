"""Find the messages behind a line of the memory."""

from __future__ import annotations

from memory.models import Line, Message


def behind(line: Line) -> list[Message]:
    """Return the messages a line rests on, in order; none when it cites nothing."""
    observation = line.observation
    thread = observation.thread_id or observation.record.thread_id
    if thread is None or line.first_position is None or line.last_position is None:
        return []
    return list(Message.objects.within(thread, line.first_position, line.last_position))
