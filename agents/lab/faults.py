"""Let the offline model of a pane fail, say nothing or be slow, and fill conversations up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from agents.lab.models import Pane
from agents.lab.scenario import ScenarioError, read
from agents.models import AgentProfile
from agents.page import Scene
from memory.messages import user_prompt
from memory.models import Thread
from memory.services.append import append
from memory.services.configure import configure
from memory.tiers import OFFLINE, offline_mode

if TYPE_CHECKING:
    from memory.services.kept import Raw

WORKS = "works"
#: Under what the thread of a pane keeps which agent it had before its Actor was switched.
FIRST = "lab_agent"
#: What a part does, as the page and the run log say it.
SAID = {
    WORKS: "works",
    "fails": "fails",
    "empty": "says nothing",
    "slow": "takes its time",
}
OPTION_OF = {"observer": "observer_model", "reflector": "reflector_model"}
WORDS = (
    "The weather was mild and nothing was decided.",
    "We talked about the street, the trees and the light in the evening.",
    "It was a long walk and a slow day, and then it was late.",
    "Somebody laughed about a hat; nobody remembers whose it was.",
)


def switch(pane: Pane, who: str, how: str) -> None:
    """Have the Actor, the Observer or the Reflector of a pane work as it should, or not.

    The Observer and the Reflector are those of the pane's memory: of all panes that share it.
    """
    if who == "actor":
        _switch_actor(pane, how)
        return
    name = _usual(pane) if how == WORKS else f"{OFFLINE}:{how}"
    reason = f"In a lab: the {who} {how}"
    configure(pane.thread_id, {OPTION_OF[who]: name}, author=pane.person, reason=reason)


def _usual(pane: Pane) -> str | None:
    """Return the model that observes in a lab; None for the server's."""
    try:
        return OFFLINE if read(pane.lab.source).head.model == OFFLINE else None
    except ScenarioError:
        return OFFLINE


@transaction.atomic
def _switch_actor(pane: Pane, how: str) -> None:
    """Give the pane's conversation an agent of its own that does wrong, or its first one back."""
    slug = f"{pane.lab.mark}-{pane.letter.lower()}"
    thread = Thread.objects.get(pk=pane.thread_id)
    profile = AgentProfile.objects.filter(slug=thread.agent).first()
    if how == WORKS:
        agent = thread.metadata.pop(FIRST, thread.agent)
    else:
        agent = slug
        thread.metadata.setdefault(FIRST, thread.agent)
        like = {"name": "Lab", "instructions": "Be brief.", "memory_options": {}}
        if profile is not None:
            like = {name: getattr(profile, name) for name in ("name", *_LIKE)}
        values = {**like, "model": f"{OFFLINE}:{how}"}
        AgentProfile.objects.update_or_create(slug=slug, defaults=values)
    thread.agent = agent
    thread.save(update_fields=["agent", "metadata"])


_LIKE = ("instructions", "remembers", "memory_options", "tools")


def fill(pane: Pane, count: int) -> list[Raw]:
    """Store so many messages of filler text in a pane's conversation, prompts and answers by turns.

    Nothing is asked of any model, and no turn is made of them.
    """
    now = timezone.now()
    said: list[ModelMessage] = []
    for number in range(count):
        text = f"Filler {number + 1}. {' '.join(WORDS)}"
        answers = number % 2
        said.append(
            ModelResponse(parts=[TextPart(text)], timestamp=now)
            if answers
            else user_prompt(text, now)
        )
    return append(pane.thread_id, said, at=now)


def faults_of(scene: Scene) -> str:
    """Return in words which parts of a pane do wrong; empty where all work."""
    options = scene.options
    models = {
        "actor": scene.agent.model_name if scene.agent else "",
        "observer": options.observer_model,
        "reflector": options.reflector_model,
    }
    wrong = ((part, offline_mode(str(model))) for part, model in models.items())
    return ", ".join(f"{part} {SAID[how]}" for part, how in wrong if how)
