"""Find where the words searched for stand: in a message, or in a line of memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from agents import words
from memory.models import Message, Thread, holding

from .find import lines_naming

AROUND = 60
MOST_LINES = 400


@dataclass(frozen=True)
class Hit:
    """Show where the words searched for were found."""

    where: str
    before: str
    match: str
    after: str
    link: str


def hits_in(threads: Collection[UUID], search: str) -> Iterator[tuple[UUID, Hit]]:
    """Yield where some words stand in threads: lines first, so that messages win."""
    lines = lines_naming(search).filter(
        Q(observation__thread__in=threads) | Q(observation__record__thread__in=threads)
    )
    of = Coalesce("observation__thread", "observation__record__thread")
    for pk, thread, text in lines.annotate(of=of).values_list("pk", "of", "text")[:MOST_LINES]:
        yield thread, _hit("memory", text, search, f"/chat/{thread}/#line-{pk}")
    first = Message.objects.filter(holding("text", search), thread=OuterRef("pk"))
    first = first.order_by("-position")
    named = Thread.objects.filter(pk__in=threads).annotate(
        at=Subquery(first.values("position")[:1]), said=Subquery(first.values("text")[:1])
    )
    for thread, at, said in named.filter(at__isnull=False).values_list("pk", "at", "said"):
        link = f"/chat/{thread}/?from={at}#message-{at}"
        yield thread, _hit("message", said, search, link)


def _hit(where: str, text: str, search: str, link: str) -> Hit:
    text = " ".join(text.split())
    at = text.lower().find(search.lower())
    if at < 0:
        return Hit(where, words.first_words(text, 2 * AROUND), "", "", link)
    start, end = max(0, at - AROUND), at + len(search)
    return Hit(
        where,
        ("…" if start else "") + text[start:at],
        text[at:end],
        text[end : end + AROUND] + ("…" if len(text) > end + AROUND else ""),
        link,
    )
