"""Name every option of memory in words: what it means, its unit, and how it is typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from memory.config import MemoryOptions

from . import texts
from .texts import Text

Look = Literal["line", "lines", "choice"]

ON_OFF = (("on", "on"), ("off", "off"))


@dataclass(frozen=True)
class Field:
    """Describe one option on the page; ``unit`` comes after the value it is typed in."""

    name: str
    label: str
    about: str
    text: Text = texts.NUMBER
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    look: Look = field(default="line")

    @property
    def default(self) -> str:
        """Return the default as text."""
        return self.text.show(_DEFAULTS[self.name])


_DEFAULTS = MemoryOptions().model_dump()


@dataclass(frozen=True)
class Group:
    """Hold options that belong together."""

    key: str
    name: str
    about: str
    fields: tuple[Field, ...]


def _flag(name: str, label: str, about: str) -> Field:
    return Field(name, label, about, texts.FLAG, choices=ON_OFF, look="choice")


def _lines(name: str, label: str, about: str, text: Text = texts.PLAIN) -> Field:
    return Field(name, label, about, text, look="lines")


_PAUSE = (
    "A time like 5m or 1.5h, auto for as long as the provider keeps a prompt, or never. "
    "Or one for each provider, on a line each: default: 10m, openai: never."
)
_MODEL = (
    "A name like openai:gpt-5-mini; empty: the other phase's, else the server's. "
    "Or a table, on each line the most tokens and a model: 8000 openai:gpt-5-nano."
)
_SETTINGS = 'Settings of pydantic-ai as JSON, like {"timeout": 60}.'

OBSERVING = Group(
    "observing",
    "When messages are observed",
    "Messages reach the agent whole until they are observed; from then on it sees lines.",
    (
        Field(
            "message_tokens",
            "Messages before observation",
            "Observe when this much is not observed yet.",
            unit="tokens",
        ),
        Field(
            "buffer_tokens",
            "Observe ahead every",
            "Below 1 a share of the messages, else tokens. off: nothing is done ahead, "
            "and turns wait for each observation.",
            texts.NUMBER_OR_OFF,
            "share or tokens",
        ),
        Field(
            "buffer_activation",
            "Take away at activation",
            "Up to 1 the share to take away; from 1000 on the tokens to keep.",
            unit="share or tokens",
        ),
        Field(
            "block_after",
            "Turns wait from",
            "The ceiling. Below 100 a multiple of the messages, else tokens.",
            unit="times or tokens",
        ),
        Field("wait_seconds", "Wait at most", "How long a turn waits at the ceiling.", unit="s"),
        _flag(
            "share_token_budget",
            "Share the budget",
            "Let messages take what observations leave of theirs.",
        ),
        Field(
            "context_tokens",
            "The agent's model takes in",
            "What overflows is left out, oldest first. off: as is known of the model.",
            texts.NUMBER_OR_OFF,
            "tokens",
        ),
        _flag(
            "observe_on_overflow",
            "Observe on overflow",
            "When a provider refuses a request as too long, observe once and send it again.",
        ),
    ),
)

EARLY = Group(
    "early",
    "Earlier than that",
    "After a pause or a change of provider no prompt is cached, so a shorter one costs nothing.",
    (
        _flag("buffer_on_idle", "Observe ahead after each turn", "However little is new."),
        _lines("activate_after_idle", "Activate after a pause of", _PAUSE, texts.PAUSE),
        _flag(
            "activate_on_provider_change",
            "Activate on a change of model",
            "When the agent's provider or model changed.",
        ),
    ),
)

OBSERVER = Group(
    "observer",
    "The Observer",
    "It writes what is worth keeping of the messages.",
    (
        _lines("observer_model", "Observer's model", _MODEL, texts.MODEL),
        _lines("observer_settings", "Its model settings", _SETTINGS, texts.OBJECT),
        Field(
            "observer_prompt",
            "Its instructions",
            "Condensed ones are for small models.",
            texts.PLAIN,
            choices=(("full", "full"), ("condensed", "condensed")),
            look="choice",
        ),
        _lines("instruction", "Told besides", "What it should mind in particular."),
        Field(
            "previous_observer_tokens",
            "Shown of what is remembered",
            "So that it repeats nothing. off: all of it.",
            texts.NUMBER_OR_OFF,
            "tokens",
        ),
        Field(
            "max_tokens_per_batch",
            "Read at once",
            "How much one call reads of several conversations.",
            unit="tokens",
        ),
        Field("parallel_calls", "Calls at once", "For one memory, 1 to 64.", unit="calls"),
        Field(
            "observe_attachments",
            "Attachments shown to it",
            "all, none, auto for what its model reads, or types like image/*, application/pdf.",
            texts.PATTERNS,
        ),
        _flag("thread_title", "Name conversations", "Let it write their titles."),
        Field(
            "continuation_hints",
            "Hints for going on",
            "What it notes for the agent: the task at hand, and what to say next.",
            texts.HINTING,
            choices=(
                ("both", "task and response"),
                ("task", "the task only"),
                ("response", "the response only"),
                ("off", "off"),
            ),
            look="choice",
        ),
        _lines(
            "extract",
            "Values to extract",
            'A list as JSON, like [{"name": "Mood", "instructions": "In one word."}].',
            texts.LIST,
        ),
    ),
)

REFLECTING = Group(
    "reflecting",
    "When observations are condensed",
    "The Reflector rewrites observations into fewer.",
    (
        Field(
            "observation_tokens",
            "Observations before reflection",
            "Condense when there is this much.",
            unit="tokens",
        ),
        Field(
            "reflection_buffer_activation",
            "Condense ahead at",
            "A share of that, more than 0 and up to 1.",
            unit="share",
        ),
        Field(
            "reflection_block_after",
            "Condense at once from",
            "Below 100 a multiple of the observations, else tokens.",
            unit="times or tokens",
        ),
        _lines("reflector_model", "Reflector's model", _MODEL, texts.MODEL),
        _lines("reflector_settings", "Its model settings", _SETTINGS, texts.OBJECT),
        _lines("reflection_instruction", "Told besides", "What it should mind in particular."),
        _lines("reflection_activate_after_idle", "Show after a pause of", _PAUSE, texts.PAUSE),
        _flag(
            "reflection_activate_on_provider_change",
            "Show on a change of model",
            "When the agent's provider or model changed.",
        ),
    ),
)

SEEN = Group(
    "seen",
    "What the agent sees",
    "Beside its memory and the messages that are not observed yet.",
    (
        _flag("temporal_markers", "Mark pauses", "Those of ten minutes and more."),
        _lines(
            "retrieval",
            "Look up messages",
            "off, thread or resource: where the agent may look. "
            "Below it, on lines of their own, what it is told about that.",
            texts.RETRIEVAL,
        ),
        Field(
            "other_conversations_tokens",
            "Of other conversations",
            "How much it is told of what is not observed there, when memory is shared.",
            unit="tokens",
        ),
    ),
)

SCOPE = Group(
    "scope",
    "Whose memory it is",
    "Of memories begun from now on: one that exists is moved by its conversation's settings.",
    (
        Field(
            "scope",
            "Scope",
            "Unless the resource has a word of its own.",
            texts.PLAIN,
            choices=(
                ("thread", "each conversation its own"),
                ("resource", "one for all conversations of a resource"),
            ),
            look="choice",
        ),
    ),
)

#: What can be set for one memory, and for an agent.
OF_RECORD = (OBSERVING, REFLECTING, EARLY, OBSERVER, SEEN)
OF_AGENT = (SCOPE, *OF_RECORD)
FIELDS = {each.name: each for group in OF_AGENT for each in group.fields}
