"""Bring back what was said: messages of a thread, the list of threads, messages with words.

Never leaves the resource of the thread it is called in, whatever is asked; never loads a
thread whole.
"""

from __future__ import annotations

from uuid import UUID

from memory.engine.recall import Asked, Mode, Refused, check, mode_of

from .behind import behind
from .messages import messages
from .reach import Reach, Scope, reach_of, retrieval_of
from .threads import threads
from .words import with_words

__all__ = ["Asked", "Reach", "Refused", "Scope", "behind", "reach_of", "recall", "retrieval_of"]


def recall(thread_id: UUID, asked: Asked, *, scope: Scope | None = None) -> str:
    """Return what is asked for, as text of at most 2,000 tokens.

    ``scope`` bounds the reach further than the options of the thread's memory do; with neither,
    it is the thread. Raises Refused, in a sentence for the model, and Thread.DoesNotExist.
    """
    check(asked)
    reach = reach_of(thread_id, scope)
    match mode_of(asked):
        case Mode.THREADS:
            return threads(reach, asked)
        case Mode.WORDS:
            return with_words(reach, asked)
        case _:
            return messages(reach, asked)
