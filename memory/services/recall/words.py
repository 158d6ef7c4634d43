"""Look for messages that hold words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from uuid import UUID

from memory.engine.recall import EVERY_THREAD, NAME, Asked, Period, ends, period, words_of
from memory.engine.recalled import Page, Said, excerpt, one_line, write_page
from memory.messages import safe_text
from memory.models import Message, Thread, holding
from memory.models.thread import MessageQuerySet
from memory.tokens import TOKENIZER

from .messages import TITLE_TOKENS, titled
from .reach import Reach
from .rows import said

LOOKED_AT = 100
"""Matching messages that are ranked; the newest ones."""

THREADS_SEARCHED = 50
"""Threads that are searched when all are asked for: the last active ones."""

HIGHEST = 2**63 - 1
NAMED_WORDS = 10
NAMED_CHARS = 20

NOTHING_FOUND = "No message holds any of these words: {words}. Try others that may have been used."


def with_words(reach: Reach, asked: Asked) -> str:
    """Return messages that hold any of the words, those with most of them first into the limit.

    They are shown in order, each from a little before its first such word. Raises Refused.
    """
    words = words_of(safe_text(asked.query))
    searched = _searched(reach, asked)
    ranked = _ranked(searched, asked, words, period(asked, reach.zone))
    shown = _shown(reach, asked, searched, ranked, words)
    if not shown:
        return NOTHING_FOUND.format(words=_listed(words))
    title = f"Messages with any of the words: {_listed(words)}."
    if len(searched) == 1:
        [thread] = searched.values()
        title = f"{title} {titled(thread, is_current=thread.pk == reach.id)}"
    return write_page(Page(tuple(shown), title, _notes(len(ranked), len(shown))), TOKENIZER)


def _searched(reach: Reach, asked: Asked) -> dict[UUID, Thread]:
    if asked.thread.strip() != EVERY_THREAD or reach.scope == "thread":
        named = asked.thread if asked.thread.strip() != EVERY_THREAD else ""
        thread = reach.thread_named(named)
        return {thread.pk: thread}
    recent = Thread.objects.filter(reach.threads()).order_by("-last_active_at", "-pk")
    return {thread.pk: thread for thread in recent[:THREADS_SEARCHED]}


def _ranked(
    searched: dict[UUID, Thread], asked: Asked, words: Sequence[str], span: Period
) -> list[int]:
    """Return the newest matches, those first that hold most of the words."""
    newest = _matches(searched, asked, words, span).values_list("pk", "text")[: LOOKED_AT + 1]
    # One text at a time: a hundred tool results are a lot to hold.
    scored = [(_held(text, words), pk) for pk, text in newest.iterator(chunk_size=10)]
    return [pk for _, pk in sorted(scored, key=lambda one: -one[0])]


def _matches(
    searched: dict[UUID, Thread], asked: Asked, words: Sequence[str], span: Period
) -> MessageQuerySet:
    any_word = reduce(or_, (holding("text", word) for word in words))
    # What recall was asked and found holds the words of every earlier search.
    found = Message.objects.filter(any_word, thread__in=searched)
    found = found.exclude(text__startswith=f"{NAME} ")
    if (asked.first, asked.last) != (None, None):
        low, high = ends(asked, 0)
        found = found.filter(position__range=(max(low, 0), min(high, HIGHEST)))
    if span.start:
        found = found.filter(created_at__gte=span.start)
    if span.end:
        found = found.filter(created_at__lt=span.end)
    # An index gives the positions of one thread in order; rows of several come as they were stored.
    return found.order_by("-position" if len(searched) == 1 else "-pk")


def _shown(
    reach: Reach,
    asked: Asked,
    searched: dict[UUID, Thread],
    ranked: Sequence[int],
    words: Sequence[str],
) -> list[Said]:
    best = Message.objects.filter(pk__in=ranked[: asked.limit])
    places = {thread: place for place, thread in enumerate(searched)}
    rows = sorted(best, key=lambda row: (places[row.thread_id], row.position))
    shown: list[Said] = []
    thread = None
    for row in rows:
        one = _with_excerpts(said(row, asked, reach.zone), words)
        if one.parts and len(searched) > 1 and row.thread_id != thread:
            thread = row.thread_id
            one = replace(one, heading=_heading(reach, searched[thread]))
        shown += [one] if one.parts else []
    return shown


def _with_excerpts(one: Said, words: Sequence[str]) -> Said:
    """Keep the parts that hold a word, each from there on; recall's own are left out."""
    holding = (
        numbered
        for numbered in one.parts
        if numbered.part.tool != NAME and _held(f"{numbered.part.tool} {numbered.part.text}", words)
    )
    return replace(one, parts=tuple(excerpt(numbered, words) for numbered in holding))


def _heading(reach: Reach, thread: Thread) -> str:
    title = one_line(thread.title, TITLE_TOKENS, TOKENIZER) or "New conversation"
    mark = ", this conversation" if thread.pk == reach.id else ""
    return f"“{title}”{mark}, thread={thread.pk}:"


def _listed(words: Sequence[str]) -> str:
    named = ", ".join(word[:NAMED_CHARS] for word in words[:NAMED_WORDS])
    return f"{named}, …" if len(words) > NAMED_WORDS else named


def _held(text: str, words: Sequence[str]) -> int:
    lower = text.lower()
    return sum(word in lower for word in words)


def _notes(found: int, shown: int) -> tuple[str, ...]:
    narrower = "Rarer words, or the dates after and before, find others."
    if found > LOOKED_AT:
        return (f"Only the newest {LOOKED_AT} messages with these words were compared. {narrower}",)
    if found > shown:
        return (f"These are {shown} of {found} messages with these words. {narrower}",)
    return ()
