"""Say what model calls cost, in US dollars; what is not known is never counted as nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import IntegerField, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from genai_prices import Usage, calc_price
from pydantic_ai.usage import RunUsage

from memory.tiers import OFFLINE, offline_mode

UNKNOWN = "price unknown"
#: Which cycles have a price that is known: the offline model costs nothing, and notes no price.
PRICED = Q(cost__isnull=False) | Q(model=OFFLINE)
#: Below this an amount is shown as less than it.
SMALLEST = Decimal("0.0001")


@dataclass(frozen=True)
class Spent:
    """Hold what is known to have been spent, and on how many calls nothing is known."""

    dollars: Decimal = Decimal(0)
    known: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, costs: Iterable[Decimal | None]) -> Spent:
        """Return the sum of some costs; None stands for one that is not known."""
        found = list(costs)
        known = [cost for cost in found if cost is not None]
        return cls(sum(known, Decimal(0)), len(known), len(found) - len(known))

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.dollars + other.dollars, self.known + other.known, self.unknown + other.unknown
        )

    def __str__(self) -> str:
        if not self.unknown:
            return words(self.dollars)
        if not self.known:
            return words(None)
        return f"{words(self.dollars)} and {self.unknown} more, {UNKNOWN}"


def of_turns(turns: QuerySet[Any], *groups: str) -> list[dict[str, Any]]:
    """Sum what turns used by some of their fields, and by the model that answered.

    ``calls``, ``read`` and ``wrote`` are of all; ``dollars`` and ``priced`` (calls) of those
    whose cost was known when they were answered.
    """

    def total(name: str, **only: Any) -> Coalesce:
        number = Cast(KeyTextTransform(name, "usage"), IntegerField())
        return Coalesce(Sum(number, **only), 0)

    rows = turns.order_by().values(*groups, "model")
    return list(
        rows.annotate(
            calls=total("requests"),
            read=total("input_tokens"),
            wrote=total("output_tokens"),
            dollars=Sum("cost"),
            priced=total("requests", filter=Q(cost__isnull=False)),
        ).filter(Q(calls__gt=0) | Q(read__gt=0))
    )


def spent_on(row: Mapping[str, Any], otherwise: str) -> Spent:
    """Return what a row of such sums cost; ``otherwise`` is the model where none was noted."""
    if row["model"]:
        return Spent(row["dollars"] or Decimal(0), row["priced"], row["calls"] - row["priced"])
    cost, calls = price(otherwise, row["read"], row["wrote"]), max(1, row["calls"])
    return Spent(unknown=calls) if cost is None else Spent(cost, known=calls)


def price(model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Return what a call of a model named like ``openai:gpt-5-mini`` costs; None: not known."""
    if offline_mode(model) is not None:
        return Decimal(0)
    provider, _, name = model.rpartition(":")
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return calc_price(usage, name, provider_id=provider or None).total_price
    except (LookupError, ValueError):
        return None


def of_run(model: str, usage: RunUsage) -> Decimal | None:
    """Return what a run cost: what its provider says, else by the list; None when not known."""
    if usage.cost is not None:
        return usage.cost
    return price(model, usage.input_tokens, usage.output_tokens)


def words(cost: Decimal | None) -> str:
    """Return an amount as the pages print it: $0.0123, $4.20, less than $0.0001, unknown."""
    if cost is None:
        return UNKNOWN
    if cost == 0:
        return "$0"
    if cost < SMALLEST:
        return f"less than ${SMALLEST}"
    return f"${cost:.2f}" if cost >= 1 else f"${_significant(cost)}"


def _significant(cost: Decimal) -> str:
    """Return an amount below one dollar to two figures that matter, of four places at most."""
    places = min(4, max(2, 1 - cost.adjusted()))
    whole, _, cents = f"{cost:.{places}f}".partition(".")
    return f"{whole}.{cents.rstrip('0'):0<2}"
