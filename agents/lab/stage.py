"""Set labs up and wipe them: everything in a lab is made for it and marked as a lab's."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.text import slugify

from agents.lab.models import LETTERS, Entry, Lab, Pane
from agents.lab.scenario import Head, Problem, Scenario, ScenarioError, read
from agents.models import AgentProfile, Turn
from agents.services.erase import erase_resource
from agents.services.send import withdraw
from agents.services.thread import start
from agents.services.turn import stop
from memory.models import Resource, Thread
from memory.services.change import Refused
from memory.services.configure import configure

if TYPE_CHECKING:
    from django.contrib.auth.models import User

BUNDLED = Path(__file__).parent / "scenarios"
AGENT = "lab"
OPTIONS = {"message_tokens": 400, "observation_tokens": 300}
STOP_SECONDS = 5.0


def presets() -> list[tuple[str, Scenario]]:
    """Return the bundled scenarios by name, in order."""
    files = sorted(BUNDLED.glob("*.yaml"))
    return [(file.stem.partition("-")[2], read(file.read_text("utf-8"))) for file in files]


def preset(name: str) -> tuple[str, Scenario] | None:
    """Return a bundled scenario with its text; None when there is no such."""
    for file in BUNDLED.glob("*.yaml"):
        if file.stem.partition("-")[2] == name:
            text = file.read_text("utf-8")
            return text, read(text)
    return None


@transaction.atomic
def open_lab(scenario: Scenario, source: str = "", *, author: User | None = None) -> Lab:
    """Make the people, resources and threads of a scenario. Raises ScenarioError."""
    head = scenario.head
    _check_agents(head)
    lab = Lab.objects.create(
        name=head.name,
        about=head.about,
        source=source or scenario.yaml,
        facts=[fact.model_dump(mode="json") for fact in head.facts],
        created_by=author,
    )
    _Maker(lab, scenario).make()
    return lab


def _check_agents(head: Head) -> None:
    wanted = {spec.agent for spec in head.panes.values() if spec.agent}
    there = set(AgentProfile.objects.filter(slug__in=wanted).values_list("slug", flat=True))
    if missing := sorted(wanted - there):
        raise ScenarioError([Problem(1, f"there is no agent {', '.join(missing)}")])


class _Maker:
    """Make the rows of one lab; the same name means the same row."""

    def __init__(self, lab: Lab, scenario: Scenario) -> None:
        self.lab = lab
        self.scenario = scenario
        self.people: dict[str, User] = {}
        self.resources: dict[str, Resource] = {}
        self.threads: dict[tuple[str, str], Thread] = {}
        self.configured: set[object] = set()

    def make(self) -> None:
        """Make all panes."""
        for letter, spec in self.scenario.head.panes.items():
            person = self._person(spec.user)
            resource = self._resource(spec.resource)
            resource.members.add(person)
            thread = self._thread(resource, spec.resource, spec.thread, spec.agent)
            Pane.objects.create(
                lab=self.lab,
                ordinal=LETTERS.index(letter),
                person=person,
                resource=resource,
                thread=thread,
            )

    def _person(self, name: str) -> User:
        if name not in self.people:
            self.people[name] = _person(self.lab, name, len(self.people))
        return self.people[name]

    def _resource(self, name: str) -> Resource:
        if name not in self.resources:
            key = f"{self.lab.mark}-{len(self.resources)}-{slugify(name)}"[:100]
            scope = self.scenario.scope_of(name)
            self.resources[name] = Resource.objects.create(key=key, name=name, scope=scope)
        return self.resources[name]

    def _thread(self, resource: Resource, owner: str, name: str, agent: str) -> Thread:
        if (owner, name) not in self.threads:
            profile = AgentProfile.objects.get(slug=agent) if agent else lab_agent()
            thread = start(resource, profile, title=name)
            thread.is_lab, thread.title_pinned = True, True
            thread.save(update_fields=["is_lab", "title_pinned"])
            self._configure(thread)
            self.threads[owner, name] = thread
        return self.threads[owner, name]

    def _configure(self, thread: Thread) -> None:
        """Give a memory the scenario's options, once for all that share it."""
        shares = thread.resource.scope == "resource"
        memory = thread.resource_id if shares else thread.pk
        if memory in self.configured or not thread.remembers:
            return
        self.configured.add(memory)
        configure(thread.pk, self._options(), reason="As the lab says")

    def _options(self) -> dict[str, Any]:
        head = self.scenario.head
        models = {"observer_model": "offline", "reflector_model": "offline"}
        return {**OPTIONS, **(models if head.model == "offline" else {}), **head.options}


def _person(lab: Lab, name: str, number: int) -> User:
    people: Any = get_user_model()._default_manager
    short = slugify(name) or "person"
    taken = people.filter(username=f"{short}.{lab.mark}").exists()
    username = f"{short}{number if taken else ''}.{lab.mark}"
    person: User = people.create(username=username, first_name=name, is_active=False)
    person.set_unusable_password()
    person.save(update_fields=["password"])
    return person


def lab_agent() -> AgentProfile:
    """Return the agent of labs, made now if there is none: offline, brief, without tools."""
    profile, _ = AgentProfile.objects.get_or_create(
        slug=AGENT,
        defaults={
            "name": "Lab",
            "about": "Answers in labs, by rules and without a language model.",
            "instructions": "You are the agent of a test. Be brief.",
            "model": "offline",
        },
    )
    return profile


def wipe(lab: Lab, *, seconds: float = STOP_SECONDS) -> Counter[str]:
    """Destroy a lab with all that was made for it; return what went, by kind.

    Answers under way are stopped first. Raises Refused when one does not stop in time.
    """
    lab.entries.waiting().update(state=Entry.State.SKIPPED)
    _stop_answers(lab, seconds)
    with transaction.atomic():
        counts: Counter[str] = Counter()
        for resource in Resource.objects.filter(lab_panes__lab=lab).distinct():
            counts.update(erase_resource(resource).counts)
        people: Any = get_user_model()._default_manager
        mine = people.filter(username__endswith=f".{lab.mark}")
        counts["people"] += mine.count()
        mine.delete()
        AgentProfile.objects.filter(slug__startswith=f"{lab.mark}-").delete()
        lab.delete()
    return +counts


def _stop_answers(lab: Lab, seconds: float) -> None:
    threads = list(Thread.objects.filter(resource__lab_panes__lab=lab).distinct())
    turns = Turn.objects.filter(thread__in=threads)
    for turn in turns.filter(status=Turn.Status.WAITING):
        withdraw(turn.thread_id, turn.number)
    for thread in threads:
        stop(thread.pk)
    until = time.monotonic() + seconds
    while turns.filter(status=Turn.Status.RUNNING).exists():
        if time.monotonic() > until:
            raise Refused("An answer is still being written. Wait a moment, then wipe again.")
        time.sleep(0.1)
