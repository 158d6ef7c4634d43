"""Turn what was done in a lab into a scenario that does it again."""

from __future__ import annotations

from typing import Any

from agents.lab.faults import FIRST
from agents.lab.models import Lab, Pane
from agents.lab.scenario import written
from agents.lab.stage import AGENT, OPTIONS
from memory.models import MemoryRecord


def recording(lab: Lab) -> str:
    """Return a lab's panes, facts and the steps carried out in it, as YAML."""
    panes = list(lab.panes.select_related("person", "resource", "thread"))
    document: dict[str, Any] = {"name": lab.name}
    if lab.about:
        document["about"] = lab.about
    if options := _options(panes):
        document["options"] = options
    document["panes"] = {pane.letter: _pane(pane) for pane in panes}
    if lab.facts:
        document["facts"] = [_fact(fact) for fact in lab.facts]
    document["steps"] = list(lab.entries.recorded().values_list("step", flat=True))
    return written(document)


def _options(panes: list[Pane]) -> dict[str, Any]:
    """Return what the first memory of a lab was told beside what every lab is."""
    records = MemoryRecord.objects.filter(
        resource__in=[pane.resource_id for pane in panes], closed_at=None
    )
    config = records.order_by("created_at").values_list("config", flat=True).first() or {}
    models = {"observer_model", "reflector_model"}
    return {
        name: value
        for name, value in config.items()
        if name not in models and OPTIONS.get(name) != value
    }


def _pane(pane: Pane) -> dict[str, str]:
    spec = {
        "user": pane.person.first_name,
        "resource": pane.resource.name,
        "thread": str(pane.thread),
        "scope": pane.resource.scope,
    }
    agent = pane.thread.metadata.get(FIRST, pane.thread.agent)
    return spec if agent == AGENT else {**spec, "agent": agent}


def _fact(fact: dict[str, Any]) -> object:
    return fact if fact.get("pane") else fact["text"]
