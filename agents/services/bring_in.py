"""Begin a conversation with messages that were said elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from memory.dispatch import dispatch
from memory.messages import interrupted_returns, open_calls
from memory.models import Resource, Thread
from memory.recordings import Recorded
from memory.services.append import append_within

from ..models import AgentProfile
from .thread import start


@transaction.atomic
def bring_in(
    resource: Resource,
    profile: AgentProfile,
    messages: Sequence[Recorded],
    *,
    title: str = "",
    temporary: bool = False,
) -> Thread:
    """Return a new thread that holds the messages at their times; memory observes them anew.

    Calls that the last of them leave open get the results of an interrupted turn, since no
    model takes a conversation without them.
    """
    thread = start(resource, profile, title=title, temporary=temporary)
    for each in messages:
        append_within(thread.pk, [each.message], at=each.at)
    if calls := open_calls([each.message for each in messages]):
        at = messages[-1].at
        append_within(thread.pk, [interrupted_returns(calls, at)], at=at)
    dispatch(thread.pk)
    return thread
