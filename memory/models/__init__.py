"""Store memory as rows, and every change of it as a revision."""

from .blob import Blob
from .cycle import Cycle
from .holding import holding
from .media import Media
from .observation import Line, Observation, ReflectionSource
from .record import Cursor, MemoryRecord, Revision
from .thread import Message, Resource, Thread

__all__ = [
    "Blob",
    "Cursor",
    "Cycle",
    "Line",
    "Media",
    "MemoryRecord",
    "Message",
    "Observation",
    "ReflectionSource",
    "Resource",
    "Revision",
    "Thread",
    "holding",
]
