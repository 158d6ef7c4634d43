"""Read scenarios: YAML that says who is there, what happens and what is expected of it.

What is wrong is told with its line, all of it at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from agents.lab.models import LETTERS
from agents.lab.steps import KINDS, Letter, Name, Part, Probe, Step
from memory.config import merged, problems

LONGEST = 100_000
MOST_STEPS = 500

Where = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """Say what is wrong, and in which line; 0 for none."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.text}" if self.line else self.text


class ScenarioError(ValueError):
    """Tell everything that is wrong with a scenario."""

    def __init__(self, found: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(found, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


class PaneSpec(Part):
    """Describe a pane; the same name means the same person, resource or thread."""

    user: Name
    resource: Name
    thread: Name = "talk"
    agent: str = ""
    scope: Literal["resource", "thread"] | None = None


class FactSpec(Part):
    """Name a text to look for; ``pane`` says where it is from when no prompt says it."""

    text: Probe
    pane: Letter | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given


class Head(Part):
    """Describe a lab: everything of a scenario but its steps."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    about: str = ""
    scope: Literal["resource", "thread"] = "resource"
    model: Literal["offline", "server"] = "offline"
    #: In dollars: once a lab has cost so much, no step begins.
    cost_cap: float | None = Field(None, gt=0, le=1_000)
    options: dict[str, Any] = Field(default_factory=dict)
    panes: dict[Letter, PaneSpec] = Field(min_length=2, max_length=len(LETTERS))
    facts: tuple[FactSpec, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """Hold a scenario that was read."""

    head: Head
    steps: tuple[Step, ...]

    def scope_of(self, resource: str) -> str:
        """Return whose memory the conversations of a resource have: all one, or each its own."""
        specs = [spec for spec in self.head.panes.values() if spec.resource == resource]
        return next((spec.scope for spec in specs if spec.scope), self.head.scope)

    @property
    def yaml(self) -> str:
        """Return the scenario as YAML."""
        head = self.head.model_dump(mode="json", exclude_defaults=True)
        if self.head.facts:
            head["facts"] = [
                fact.text if fact.pane is None else fact.model_dump() for fact in self.head.facts
            ]
        steps = [step.written() for step in self.steps]
        return written({**head, "steps": steps})


def written(document: object) -> str:
    """Return a document as YAML for people."""
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=88)
    return text


def read(text: str) -> Scenario:
    """Return a scenario from YAML. Raises ScenarioError."""
    root, document = _loaded(text)
    wrong: list[tuple[Where, str]] = []
    steps = document.pop("steps", None)
    head = _head(document, wrong)
    found = list(_steps(steps, set(document.get("panes") or ()), wrong))
    if wrong:
        raise ScenarioError(Problem(line_of(root, where), said) for where, said in wrong)
    assert head is not None
    return Scenario(head, tuple(found))


def step_of(item: Mapping[str, Any]) -> Step:
    """Return a step from what a scenario writes of it. Raises pydantic.ValidationError."""
    ((name, value),) = item.items()
    return KINDS[name].model_validate(value)


def _loaded(text: str) -> tuple[yaml.Node, dict[str, Any]]:
    if len(text) > LONGEST:
        raise ScenarioError([Problem(1, f"the scenario is longer than {LONGEST:,} characters")])
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ScenarioError([Problem(mark.line + 1 if mark else 1, str(error.problem))]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ScenarioError([Problem(1, f"this is no YAML: {error}"[:200])]) from None
    if root is None or not isinstance(document, dict):
        raise ScenarioError([Problem(1, "write a mapping with name, panes and steps")])
    return root, document


def _head(document: Mapping[str, Any], wrong: list[tuple[Where, str]]) -> Head | None:
    try:
        head = Head.model_validate(document)
    except ValidationError as error:
        wrong += _said(error, ())
        return None
    if "scope" in head.options:
        wrong.append((("options", "scope"), "scope stands beside the options, not among them"))
    try:
        merged({}, head.options)
    except ValidationError as error:
        wrong += [(("options",), said) for said in problems(error)]
    scopes: dict[str, str] = {}
    for letter, spec in head.panes.items():
        if spec.scope and scopes.setdefault(spec.resource, spec.scope) != spec.scope:
            said = f"the resource {spec.resource} has another scope in an earlier pane"
            wrong.append((("panes", letter, "scope"), said))
    wrong += [
        (("facts", number), f"there is no pane {fact.pane}")
        for number, fact in enumerate(head.facts)
        if fact.pane and fact.pane not in head.panes
    ]
    return head


def _steps(given: Any, panes: set[Any], wrong: list[tuple[Where, str]]) -> Iterator[Step]:
    if given is None:
        return
    if not isinstance(given, list) or len(given) > MOST_STEPS:
        wrong.append((("steps",), f"write a list of at most {MOST_STEPS} steps"))
        return
    for number, item in enumerate(given):
        where: Where = ("steps", number)
        bare = {item: None} if isinstance(item, str) else item
        if not isinstance(bare, dict) or len(bare) != 1 or not set(bare) <= set(KINDS):
            wrong.append((where, f"write one of {', '.join(KINDS)} with what it needs"))
            continue
        try:
            step = step_of(bare)
        except ValidationError as error:
            wrong += _said(error, where, *bare)
            continue
        wrong += [(where, f"there is no pane {each}") for each in step.letters if each not in panes]
        yield step


def _said(error: ValidationError, where: Where, *under: str) -> Iterator[tuple[Where, str]]:
    for each in error.errors(include_url=False, include_context=False):
        path = (*under, *(step for step in each["loc"] if step != "[key]"))
        name = ".".join(str(step) for step in path)
        said = each["msg"].removeprefix("Value error, ")
        said = said[:1].lower() + said[1:]
        yield (*where, *path), f"{name}: {said}" if name else said


def line_of(root: yaml.Node, where: Where) -> int:
    """Return the line of a place in a document, or of the nearest part that is there."""
    node = root
    for step in where:
        found = _child(node, step)
        if found is None:
            break
        node = found
    return int(node.start_mark.line) + 1


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child: yaml.Node = node.value[step]
        return child
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                # A key without anything below stands where it is written.
                return value if isinstance(value, yaml.CollectionNode) and value.value else key
    return None
