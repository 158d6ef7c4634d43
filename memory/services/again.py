"""Let failed work be tried again at once, and take work from whoever does it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from memory.dispatch import dispatch
from memory.models import Cycle

from .change import Refused, thread_of
from .cycles import publish_failed

if TYPE_CHECKING:
    from django.contrib.auth.models import User

#: How long a lane rests after somebody cancelled its work: it must not begin again at once.
REST = timedelta(minutes=2)
RELEASED = "Somebody took this work back: its lease was released by hand."


def try_again(cycle_id: UUID) -> None:
    """Let a failed cycle that rests be tried again now. Raises Refused."""
    with transaction.atomic():
        cycle = _cycle(cycle_id)
        resting = Cycle.objects.tried_again().filter(pk=cycle_id)
        if _latest(cycle) != cycle_id or not resting.update(next_attempt_at=Now()):
            raise Refused(
                "Only the latest cycle of its lane can be tried again, if it failed and may be "
                "mended; what came after it took its place."
            )
        _wake(cycle)


def release(cycle_id: UUID) -> None:
    """End a running cycle as interrupted, so that another may be claimed now.

    Whoever runs it writes nothing more. Raises Refused when it does not run.
    """
    with transaction.atomic():
        cycle = _cycle(cycle_id)
        ended = (
            Cycle.objects.running()
            .filter(pk=cycle_id, owner=cycle.owner)
            .update(
                status=Cycle.Status.FAILED,
                error=RELEASED,
                interrupted=True,
                finished_at=Now(),
                next_attempt_at=Now(),
            )
        )
        if not ended:
            raise Refused("This cycle does not run any more: there is no lease to release.")
        publish_failed(cycle, "interrupted")
        _wake(cycle)


def cancel(cycle_id: UUID, *, author: User | None = None) -> None:
    """End a running cycle because somebody does not want it now; its lane rests for a while.

    Whoever runs it writes nothing more, and a turn that waits for it goes on without. The
    attempt does not count: nothing went wrong. Raises Refused when it does not run.
    """
    with transaction.atomic():
        cycle = _cycle(cycle_id)
        by = f" by {author.get_username()}" if author else ""
        ended = (
            Cycle.objects.running()
            .filter(pk=cycle_id, owner=cycle.owner)
            .update(
                status=Cycle.Status.CANCELLED,
                error=f"Cancelled{by}. Nothing was written; it is tried again in a while.",
                finished_at=Now(),
                next_attempt_at=Now() + REST,
            )
        )
        if not ended:
            raise Refused("This does not run any more: there is nothing to cancel.")
        publish_failed(cycle, Cycle.Status.CANCELLED.value)


def _cycle(cycle_id: UUID) -> Cycle:
    found = Cycle.objects.select_related("record").filter(pk=cycle_id).first()
    if found is None:
        raise Refused("There is no such cycle.")
    return found


def _latest(cycle: Cycle) -> UUID | None:
    of_lane = Cycle.objects.filter(record=cycle.record_id, lane=cycle.lane)
    return of_lane.order_by("-started_at", "-id").values_list("pk", flat=True).first()


def _wake(cycle: Cycle) -> None:
    thread = cycle.thread_id or thread_of(cycle.record)
    if thread is not None:
        dispatch(thread)
