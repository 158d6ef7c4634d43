"""Change a record's options while it is in use: they apply from the next step on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from pydantic import ValidationError

from memory.config import merged, options_of_agent, problems
from memory.dispatch import dispatch
from memory.events import MemoryConfigured
from memory.messages import safe_text
from memory.models import Revision, Thread
from memory.publish import publish

from .anew import anew
from .change import LONGEST_REASON, Refused, held
from .look import read
from .sizes import tokens_at

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from memory.models import MemoryRecord

OF_THE_SCOPE = "scope"
#: What a revision calls it when the memory of one conversation is turned off or on.
REMEMBERS = "remembers"
_UNSET = object()


@anew
def configure(
    thread_id: UUID,
    changes: Mapping[str, Any],
    *,
    author: User | None = None,
    reason: str = "",
) -> int:
    """Change options of the record a thread's memory is in; return the revision it has then.

    A value of None takes the record's own word back, so that its agent's holds again. No work
    under way is given up. Raises Refused, with nothing changed, naming every wrong option.
    """
    if OF_THE_SCOPE in changes:
        raise Refused(
            f"{OF_THE_SCOPE} = {changes[OF_THE_SCOPE]!r}: cannot be set here; change the scope "
            "of the memory itself, which moves it."
        )
    thread = Thread.objects.get(pk=thread_id)
    with transaction.atomic():
        found = read(thread_id).record
        if found is None:
            raise Refused("This conversation has no memory to set up; turn its memory on first.")
        record = held(found.pk)
        config = changed(options_of_agent(thread.agent), record.config, changes)
        if config == record.config:
            return record.revision
        write(record, config, thread=thread, author=author, reason=reason)
        dispatch(thread_id)
    return record.revision


def changed(
    of_agent: Mapping[str, Any], overrides: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a record's options after a change, as they are stored. Raises Refused."""
    kept = {name: value for name, value in overrides.items() if name not in changes}
    given = {name: value for name, value in changes.items() if value is not None}
    try:
        options = merged(of_agent, {**kept, **given})
    except ValidationError as error:
        raise Refused("; ".join(problems(error))) from None
    values = options.model_dump(mode="json")
    for name in given:
        if any(safe_text(text) != text for text in _texts(values[name])):
            raise Refused(f"{name}: holds characters that cannot be stored; write it without them.")
    return {**kept, **{name: values[name] for name in given}}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from (str(name), *_texts(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def write(
    record: MemoryRecord,
    config: dict[str, Any],
    *,
    thread: Thread,
    author: User | None,
    reason: str,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Store a record's options as one revision, which keeps what they were; ``more`` goes with it.

    Must run inside a transaction that holds the record. Raises Refused.
    """
    if len(reason) > LONGEST_REASON:
        raise Refused(
            f"The reason has {len(reason):,} characters; at most {LONGEST_REASON:,} are kept."
        )
    number = record.advance()
    changes = {**differences(record.config, config), **(more or {})}
    record.config = config
    record.save(update_fields=["config"])
    tokens = tokens_at(record.pk, number)
    Revision.objects.create(
        record=record,
        number=number,
        cause=Revision.Cause.CONFIG,
        author=author,
        thread=thread,
        reason=safe_text(reason.strip()),
        options=changes,
        tokens_before=tokens,
        tokens_after=tokens,
    )
    publish(MemoryConfigured(thread=thread.pk, record=record.pk, revision=number))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each option that differs, with its values; one that was not set has none."""
    return {
        name: {
            when: options[name]
            for when, options in (("before", before), ("after", after))
            if name in options
        }
        for name in sorted({*before, *after})
        if before.get(name, _UNSET) != after.get(name, _UNSET)
    }


def undone(now: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options as they were before some changes."""
    kept = {name: value for name, value in now.items() if name not in changes}
    was = {name: each["before"] for name, each in changes.items() if "before" in each}
    return {**kept, **was}
