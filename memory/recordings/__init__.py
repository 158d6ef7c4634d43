"""Read recorded conversations from files: our JSON lines, LoCoMo's and LongMemEval's JSON."""

from memory.recordings.formats import read
from memory.recordings.values import Question, Recorded, Recording, RecordingError

__all__ = ["Question", "Recorded", "Recording", "RecordingError", "read"]
