"""Make a scenario of the form that lays out a lab by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.lab.models import LETTERS
from agents.lab.scenario import Head, Problem, Scenario, ScenarioError

FIELDS = ("user", "resource", "thread", "agent")


def scenario_from(form: Mapping[str, str]) -> Scenario:
    """Return a scenario without steps from a form's panes. Raises ScenarioError.

    A pane without a user and a resource is not there.
    """
    panes = {letter: pane for letter in LETTERS if (pane := _pane(form, letter))}
    fields: dict[str, Any] = {
        "name": form.get("name", "").strip() or "A lab of my own",
        "scope": form.get("scope", "resource"),
        "panes": panes,
        "cost_cap": form.get("cost_cap", "").strip() or None,
        "model": form.get("model", "offline"),
    }
    try:
        return Scenario(Head.model_validate(fields), ())
    except ValidationError as error:
        raise ScenarioError(_problem(each) for each in error.errors()) from None


def _pane(form: Mapping[str, str], letter: str) -> dict[str, str]:
    given = {field: form.get(f"{field}-{letter}", "").strip() for field in FIELDS}
    if not (given["user"] or given["resource"]):
        return {}
    return {field: value for field, value in given.items() if value}


def _problem(error: Any) -> Problem:
    place = [str(step) for step in error["loc"] if step != "[key]"]
    if place == ["panes"]:
        return Problem(0, "A lab has two to four panes, each with a user and a resource.")
    pane = f"Pane {place[1]}: " if len(place) > 1 else ""
    said = error["msg"][:1].lower() + error["msg"][1:]
    return Problem(0, f"{pane}{place[-1]}: {said}")
