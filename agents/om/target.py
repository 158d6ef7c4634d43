"""Find what a replay needs: the recording, and the conversation it goes into."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from pydantic import ValidationError

from memory.config import merged
from memory.models import MemoryRecord, Resource, Thread
from memory.recordings import Recording, RecordingError, read

from ..models import AgentProfile
from ..services.replay import ReplayRefused, Source, adopt, begin, replays

OPTIONS = {"messages": "message_tokens", "observations": "observation_tokens"}
MOST_NAMED = 12


def recording_of(path: Path, key: str | None) -> tuple[Recording, Source]:
    """Return one conversation of a file, and what it is known by. Raises CommandError."""
    try:
        recordings = read(path)
    except RecordingError as error:
        raise CommandError(str(error)) from error
    keys = [recording.key for recording in recordings]
    if key is None and len(recordings) > 1:
        raise CommandError(
            f"{path} holds {len(keys)} conversations; choose one with --conversation: "
            f"{_named(keys)}."
        )
    chosen = [recording for recording in recordings if key in (None, recording.key)]
    if not chosen:
        raise CommandError(f"{path} holds no conversation {key}; it holds {_named(keys)}.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return chosen[0], Source(chosen[0].key, digest)


def resource_of(key: str | None) -> Resource:
    """Return a resource by key, or the only one there is. Raises CommandError."""
    real = Resource.objects.filter(lab_panes=None).order_by("key")
    keys = list(real.values_list("key", flat=True))
    if not keys:
        raise CommandError("There is no resource yet; `python manage.py demo` makes some.")
    if key is None and len(keys) > 1:
        raise CommandError(f"Say whose conversation it is with --resource: {_named(keys)}.")
    if key is not None and key not in keys:
        raise CommandError(f"There is no resource {key}; there are {_named(keys)}.")
    return Resource.objects.get(key=key or keys[0])


def agent_of(slug: str | None) -> AgentProfile:
    """Return an agent by slug, or the first there is. Raises CommandError."""
    profiles = AgentProfile.objects.order_by("pk")
    slugs = list(profiles.values_list("slug", flat=True))
    if not slugs:
        raise CommandError("There is no agent yet; `python manage.py demo` makes some.")
    if slug is not None and slug not in slugs:
        raise CommandError(f"There is no agent {slug}; there are {_named(slugs)}.")
    return profiles.get(slug=slug or slugs[0])


def options_of(text: str | None, profile: AgentProfile) -> dict[str, Any]:
    """Return memory options from ``messages=3000,observations=4000``. Raises CommandError."""
    if not text:
        return {}
    if not profile.remembers:
        raise CommandError(f"The agent {profile.slug} does not remember: it has no thresholds.")
    options = dict(_option(pair) for pair in text.split(","))
    try:
        merged(profile.memory_options, options)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise CommandError(f"--thresholds {text} cannot be: {problem}") from error
    return options


def _option(pair: str) -> tuple[str, int]:
    name, _, number = pair.partition("=")
    if name.strip() not in OPTIONS or not number.strip().isdecimal():
        raise CommandError(
            f'--thresholds does not take "{pair}"; write it like messages=3000,observations=4000'
        )
    return OPTIONS[name.strip()], int(number)


def thread_of(
    source: Source,
    title: str,
    *,
    name: str | None,
    resource: str | None,
    agent: str | None,
    thresholds: str | None,
) -> Thread:
    """Return the conversation that replays a recording, made now if there is none.

    ``name`` is an id or a title; without it the one begun earlier goes on. Raises CommandError.
    """
    owner = None if _is_id(name) and resource is None else resource_of(resource)
    found = _found(source, name, owner)
    if found is None:
        profile = agent_of(agent)
        assert owner is not None
        options = options_of(thresholds, profile)
        wanted = name or title
        return begin(source, resource=owner, profile=profile, title=wanted, options=options)
    if agent not in (None, found.agent):
        raise CommandError(f"The conversation “{found}” is with the agent {found.agent}.")
    profile = agent_of(found.agent)
    options = options_of(thresholds, profile)
    if replays(found, source):
        _same_options(found, options)
    else:
        _adopt(found, source, options)
    return found


def _is_id(name: str | None) -> bool:
    try:
        return name is not None and bool(UUID(name))
    except ValueError:
        return False


def _found(source: Source, name: str | None, owner: Resource | None) -> Thread | None:
    threads = Thread.objects.all() if owner is None else Thread.objects.filter(resource=owner)
    if name is not None and _is_id(name):
        found = threads.filter(pk=UUID(name)).first()
        if found is None:
            raise CommandError(f"There is no conversation {name}; `om list` names those there are.")
        return found
    if name is not None:
        named = list(threads.filter(title=name).order_by("created_at"))
        if len(named) > 1 and not any(replays(thread, source) for thread in named):
            ids = _named(str(thread.pk) for thread in named)
            raise CommandError(f"Several conversations are called “{name}”; choose one: {ids}.")
        return next((t for t in named if replays(t, source)), named[0] if named else None)
    begun = threads.filter(metadata__replay__key=source.key).order_by("-created_at")
    return next((thread for thread in begun if replays(thread, source)), None)


def _same_options(thread: Thread, options: dict[str, Any]) -> None:
    config = MemoryRecord.objects.filter(thread=thread, closed_at=None).values_list("config")
    stored = config.first()
    if options and (stored is None or stored[0] != options):
        raise CommandError(
            f"The replay into “{thread}” was begun with other thresholds. Go on without "
            "--thresholds, or begin anew with --thread and another title."
        )


def _adopt(thread: Thread, source: Source, options: dict[str, Any]) -> None:
    try:
        adopt(thread, source, options=options)
    except ReplayRefused as refused:
        raise CommandError(f"{refused} Name a new one with --thread.") from refused


def _named(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
