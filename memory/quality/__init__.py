"""Measure what a memory keeps of a conversation, by its questions, without any model.

It shares no code with what it measures: words and dates are read here a second time.
"""

from memory.quality.control import shuffled
from memory.quality.questions import Asked
from memory.quality.scores import Scores, score
from memory.quality.values import MemoryLine, Remembered, Turn

__all__ = ["Asked", "MemoryLine", "Remembered", "Scores", "Turn", "score", "shuffled"]
