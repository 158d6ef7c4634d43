"""Say in numbers what goes when conversations are deleted, and ask when others lose by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from memory.models import Line, Message, Observation, Thread

SOURCE = "observation__sources__thread"
_OPEN = Q(observation__record__thread__isnull=True, observation__record__closed_at__isnull=True)


@dataclass(frozen=True)
class Fate:
    """Hold what goes with one conversation; ``shared`` lines are part of others' memory."""

    thread: UUID
    title: str
    messages: int
    lines: int
    shared: int
    forks: int

    @property
    def words(self) -> str:
        """Return what goes, in a sentence."""
        said = f"{_counted(self.messages, 'message')} and {_counted(self.lines, 'line')} of memory"
        stays = f" Its {_counted(self.forks, 'fork')} stay." if self.forks > 1 else ""
        stays = " Its fork stays." if self.forks == 1 else stays
        if not self.shared:
            return f"{said} are erased.{stays}"
        shared = _counted(self.shared, "line")
        return (
            f"{said} are erased, and {shared} of them {'is' if self.shared == 1 else 'are'} in "
            f"memory that other conversations share: they lose what it says, and every reflection "
            f"made of it.{stays}"
        )


def fates_of(threads: Sequence[Thread]) -> list[Fate]:
    """Return what goes with each of some conversations, in five statements however many."""
    ids = [thread.pk for thread in threads]
    messages = _by_thread(Message.objects.filter(thread__in=ids).values_list("thread"))
    forks = _by_thread(Thread.objects.there().filter(parent__in=ids).values_list("parent"))
    written = Line.objects.filter(until__isnull=True)
    own = _by_thread(
        written.filter(observation__record__thread__in=ids, since__isnull=False).values_list(
            "observation__record__thread"
        )
    )
    shared = _by_thread(written.filter(_shared(ids)).values_list("observation__thread"))
    shared += _by_thread(written.filter(_condensed(ids)).values_list(SOURCE))
    return [
        Fate(
            thread=thread.pk,
            title=str(thread),
            messages=messages[thread.pk],
            lines=own[thread.pk] + shared[thread.pk],
            shared=shared[thread.pk],
            forks=forks[thread.pk],
        )
        for thread in threads
    ]


def _shared(ids: Collection[UUID]) -> Q:
    """Select the lines that conversations gave to memory others share."""
    return _OPEN & Q(observation__thread__in=ids, observation__kind=Observation.Kind.OBSERVATION)


def _condensed(ids: Collection[UUID]) -> Q:
    """Select the lines of reflections in such memory that were made of theirs."""
    return _OPEN & Q(
        **{f"{SOURCE}__in": ids},
        observation__kind=Observation.Kind.REFLECTION,
        since__isnull=False,
    )


def _by_thread(found: object) -> Counter[UUID]:
    counted = found.order_by().annotate(count=Count("pk", distinct=True))  # type: ignore[attr-defined]
    return Counter(dict(counted))


def phrase(fates: Sequence[Fate]) -> str:
    """Return what must be typed to erase these conversations at once."""
    return fates[0].title if len(fates) == 1 else f"erase {len(fates)} conversations"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
