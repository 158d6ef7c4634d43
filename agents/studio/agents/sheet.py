"""Read what the agents' pages show, and what their form says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, OuterRef, QuerySet, Subquery
from django.http import QueryDict

from agents import costs
from agents.models import AgentProfile
from agents.services.describe import OPTIONS
from agents.tools import TOOLS
from memory import llm
from memory.config import in_force
from memory.models import Thread
from memory.services.cycles import Resolve, resolve_model
from memory.tiers import check_name

from .presets import PRESETS, Preset, applied, preset_of

FIELDS = ("name", "about", "instructions", "model")
OWN = "own"


@dataclass(frozen=True)
class Card:
    """Show one agent of the list."""

    profile: AgentProfile
    threads: int
    active_at: str
    memory: str
    wrong: str


def cards(threads: QuerySet[Thread]) -> list[Card]:
    """Return all agents, each with how many of some conversations have it, in one statement."""
    mine = threads.filter(agent=OuterRef("slug")).order_by().values("agent")
    found = AgentProfile.objects.annotate(
        threads=Subquery(mine.annotate(of=Count("pk")).values("of")),
        active_at=Subquery(mine.annotate(of=Max("last_active_at")).values("of")),
    )
    return [_card(profile) for profile in found.order_by("name")]


def _card(profile: Any) -> Card:
    return Card(
        profile=profile,
        threads=profile.threads or 0,
        active_at=profile.active_at.isoformat(timespec="seconds") if profile.active_at else "",
        memory=memory_in_words(profile),
        wrong=wrong_model(profile.model_name),
    )


def memory_in_words(profile: AgentProfile) -> str:
    """Return how an agent remembers: not at all, as a preset, or by options of its own."""
    if not profile.remembers:
        return "off"
    preset = preset_of(profile.memory_options)
    extra = len(set(profile.memory_options) - set(preset.options if preset else ()))
    name = preset.name if preset else "Own options"
    return f"{name}, {extra} changed" if preset and extra else name


def wrong_model(name: str) -> str:
    """Return what is wrong with a model's name itself; empty when nothing is."""
    try:
        check_name(name)
    except ValueError as error:
        return str(error)
    return ""


def unavailable(name: str, *, resolve: Resolve = resolve_model) -> str:
    """Return why a model cannot be used on this server; empty when it can.

    The first use of a provider imports its package, which takes seconds.
    """
    try:
        resolve(name)
    except llm.ModelUnavailable as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class ToolBox:
    """Show one tool that an agent may have."""

    name: str
    about: str
    has: bool
    note: str = ""


@dataclass
class Sheet:
    """Hold an agent as the form shows it: stored, typed, or new."""

    profile: AgentProfile
    is_new: bool = False
    preset: str = ""
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> list[ToolBox]:
        """Return the tools there are."""
        return [self._tool(name) for name in TOOLS]

    def _tool(self, name: str) -> ToolBox:
        has = name in self.profile.tools
        note = ""
        if has and name == "recall":
            options = in_force(self.profile.slug, self.profile.memory_options, {})
            if not options.retrieval:
                note = "Kept from it: “Look up messages” is off in its memory options."
        return ToolBox(name, TOOLS[name].description or "", has, note)

    @property
    def presets(self) -> Sequence[Preset]:
        """Return what memory can begin with."""
        return PRESETS

    @property
    def chosen(self) -> str:
        """Return which preset is chosen; OWN for options that are as none."""
        if self.preset:
            return self.preset
        found = preset_of(self.profile.memory_options)
        return found.key if found else OWN

    @property
    def server_model(self) -> str:
        """Return the model an agent without one uses."""
        return settings.ACTOR_MODEL

    @property
    def price(self) -> str:
        """Return what a million tokens cost, read and written."""
        name = self.profile.model_name
        read, wrote = (costs.price(name, *pair) for pair in ((10**6, 0), (0, 10**6)))
        if read is None or wrote is None or wrong_model(name):
            return costs.UNKNOWN
        return f"{costs.words(read)} read, {costs.words(wrote)} written per million tokens"


def typed(form: QueryDict, profile: AgentProfile | None = None) -> Sheet:
    """Return what a form says of an agent; nothing is stored."""
    known: Mapping[str, Any] = {name: form.get(name, "") for name in FIELDS}
    preset = form.get("preset", "")
    options = applied(preset, profile.memory_options if profile else {})
    drafted = AgentProfile(
        slug=profile.slug if profile else form.get("slug", ""),
        remembers=form.get("remembers") == "on",
        tools=[name for name in TOOLS if name in form.getlist("tools")],
        memory_options=options,
        **known,
    )
    return Sheet(drafted, is_new=profile is None, preset=preset)


def fields_of(sheet: Sheet) -> dict[str, Any]:
    """Return the fields of a sheet as they are to be stored."""
    profile = sheet.profile
    return {
        **{name: getattr(profile, name) for name in FIELDS},
        "remembers": profile.remembers,
        "tools": profile.tools,
        OPTIONS: profile.memory_options,
    }
