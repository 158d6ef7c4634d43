"""Keep a lab from costing more than its scenario allows."""

from __future__ import annotations

from decimal import Decimal

from django.db.models import Count, Q, Sum

from agents import costs
from agents.lab.models import Lab
from agents.lab.scenario import ScenarioError, read
from agents.models import AgentProfile, Turn
from memory.models import Cycle


def cap_of(lab: Lab) -> Decimal | None:
    """Return how many dollars a lab may cost; None without a cap."""
    if "cost_cap" not in lab.source:
        return None
    try:
        cap = read(lab.source).head.cost_cap
    except ScenarioError:
        return None
    return None if cap is None else Decimal(str(cap))


def spent_on(lab: Lab) -> costs.Spent:
    """Return what the answers and the memory of a lab have cost."""
    turns = Turn.objects.filter(thread__resource__lab_panes__lab=lab).distinct()
    models = {profile.slug: profile.model_name for profile in AgentProfile.objects.all()}
    rows = costs.of_turns(Turn.objects.filter(pk__in=turns.values("pk")), "thread__agent")
    spent = (costs.spent_on(row, models.get(row["thread__agent"], "")) for row in rows)
    return sum(spent, _on_memory(lab))


def _on_memory(lab: Lab) -> costs.Spent:
    resources = lab.panes.values("resource")
    unpriced = Q(input_tokens__gt=0) & ~costs.PRICED
    used = Cycle.objects.filter(record__resource__in=resources).aggregate(
        dollars=Sum("cost"),
        known=Count("pk", filter=Q(input_tokens__gt=0) & costs.PRICED),
        unknown=Count("pk", filter=unpriced),
    )
    return costs.Spent(used["dollars"] or Decimal(0), used["known"], used["unknown"])


def why_no_more(lab: Lab) -> str:
    """Return why nothing more may be asked of models in a lab; empty when it may.

    What is not known is not counted as nothing: a cap cannot be kept without prices.
    """
    cap = cap_of(lab)
    if cap is None:
        return ""
    spent = spent_on(lab)
    if spent.unknown:
        return (
            f"The cost cap of {costs.words(cap)} cannot be kept: the price of {spent.unknown} "
            f"call{'' if spent.unknown == 1 else 's'} is not known."
        )
    if spent.dollars < cap:
        return ""
    return f"The lab has cost {costs.words(spent.dollars)}; its cap is {costs.words(cap)}."
