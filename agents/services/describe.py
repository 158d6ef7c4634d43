"""Create, change, copy and remove agents, and keep what they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from memory.messages import safe_text
from memory.models import Thread
from memory.services.change import Refused
from memory.services.configure import changed, differences, undone
from memory.tiers import check_name

from ..changes import AgentChange
from ..models import AgentProfile
from ..tools import TOOLS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

OPTIONS = "memory_options"
FIELDS = ("name", "about", "instructions", "model", "remembers", "tools", OPTIONS)
LONGEST = {"name": 200, "about": 2_000, "instructions": 100_000, "model": 200}
FIRST = "first"
#: What an address of the agents' pages means by itself.
RESERVED = frozenset({"new"})


class BadAgent(ValueError):
    """Say which fields of an agent are wrong, each in a sentence."""

    def __init__(self, wrong: Mapping[str, str]) -> None:
        super().__init__(" ".join(wrong.values()))
        self.wrong = dict(wrong)


class InUse(Refused):
    """Say how many conversations an agent has, and so cannot be removed."""


def create(
    fields: Mapping[str, Any], *, slug: str = "", author: User | None = None
) -> AgentProfile:
    """Return a new agent; its short name is made of its name when not given. Raises BadAgent."""
    known = checked(fields)
    short = slugify(slug or known.get("name", ""))[:100]
    if not short or short in RESERVED:
        raise BadAgent({"slug": "Give a short name of letters, digits and hyphens, but not “new”."})
    try:
        with transaction.atomic():
            profile = AgentProfile.objects.create(slug=short, **known)
            fields = {name: _difference(name, None, value) for name, value in known.items()}
            AgentChange.objects.create(agent=profile, author=author, fields=fields)
    except IntegrityError:
        raise BadAgent({"slug": f"There is an agent “{short}” already."}) from None
    return profile


def change(slug: str, fields: Mapping[str, Any], *, author: User | None = None) -> AgentProfile:
    """Change fields of an agent and keep what they were; return it. Raises BadAgent."""
    known = checked(fields)
    with transaction.atomic():
        profile = AgentProfile.objects.select_for_update().get(slug=slug)
        different = {
            name: _difference(name, getattr(profile, name), value)
            for name, value in known.items()
            if getattr(profile, name) != value
        }
        if different:
            for name in different:
                setattr(profile, name, known[name])
            profile.save(update_fields=list(different))
            AgentChange.objects.create(agent=profile, author=author, fields=different)
    return profile


def _difference(name: str, before: Any, after: Any) -> dict[str, Any]:
    if name == OPTIONS:
        return differences(before or {}, after)
    return {"before": before, "after": after}


def copy(slug: str, *, author: User | None = None) -> AgentProfile:
    """Return a copy of an agent under a name of its own."""
    original = AgentProfile.objects.get(slug=slug)
    fields = {name: getattr(original, name) for name in FIELDS}
    fields["name"] = f"{original.name[:190]} (copy)"
    return create(fields, slug=_free(f"{original.slug[:90]}-copy"), author=author)


def _free(slug: str) -> str:
    taken = set(AgentProfile.objects.filter(slug__startswith=slug).values_list("slug", flat=True))
    numbered = (f"{slug}-{n}" for n in range(2, len(taken) + 3))
    return slug if slug not in taken else next(each for each in numbered if each not in taken)


def remove(slug: str) -> None:
    """Remove an agent that no conversation has. Raises InUse."""
    with transaction.atomic():
        profile = AgentProfile.objects.select_for_update().get(slug=slug)
        if count := Thread.objects.filter(agent=slug).count():
            raise InUse(
                f"{count} conversation{'s have' if count > 1 else ' has'} this agent. "
                "It can be removed once they are deleted."
            )
        profile.delete()


def go_back(slug: str, to: str, *, author: User | None = None) -> AgentProfile:
    """Set an agent's memory options to what they were after a change, or before the first.

    Raises Refused.
    """
    profile = AgentProfile.objects.get(slug=slug)
    options = dict(profile.memory_options)
    for each in option_changes(profile):
        if str(each.pk) == to:
            break
        options = undone(options, each.fields[OPTIONS])
    else:
        if to != FIRST:
            raise Refused("There is no such change.")
    try:
        return change(slug, {OPTIONS: options}, author=author)
    except BadAgent as wrong:
        raise Refused(str(wrong)) from None


def option_changes(profile: AgentProfile) -> list[AgentChange]:
    """Return all changes of an agent's memory options, newest first."""
    rows = profile.changes.select_related("author").order_by("-created_at", "-pk")
    return [each for each in rows if OPTIONS in each.fields]


def checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they are stored. Raises BadAgent naming all that is wrong."""
    known = {name: _plain(name, fields[name]) for name in FIELDS if name in fields}
    wrong = {name: said for name, value in known.items() if (said := _wrong(name, value))}
    if OPTIONS in known and OPTIONS not in wrong:
        try:
            known[OPTIONS] = changed({}, {}, known[OPTIONS])
        except Refused as refused:
            wrong[OPTIONS] = str(refused)
    if wrong:
        raise BadAgent(wrong)
    return known


def _plain(name: str, value: Any) -> Any:
    return safe_text(value.replace("\r\n", "\n").strip()) if name in LONGEST else value


def _wrong(name: str, value: Any) -> str:
    if name in LONGEST and len(value) > LONGEST[name]:
        return f"This has {len(value):,} characters; at most {LONGEST[name]:,} are kept."
    match name:
        case "name" | "instructions" if not value:
            return "Give it a name." if name == "name" else "Say what the agent is to do."
        case "model" if value:
            return _wrong_model(value)
        case "tools" if unknown := [each for each in value if each not in TOOLS]:
            return f"There is no tool “{unknown[0]}”; there are {', '.join(TOOLS)}."
    return ""


def _wrong_model(name: str) -> str:
    try:
        check_name(name)
    except ValueError as error:
        return str(error)
    return ""
