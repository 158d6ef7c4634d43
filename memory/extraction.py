"""Extract named values from conversations beside the observations.

An *inline* extractor has the Observer write its value into its reply, a *structured* one has
a model fill in a schema afterwards, and a *hook* only hands what was observed to a function.
One extractor that fails costs the others nothing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel, ValidationError

from .engine.escape import TAGS
from .engine.schema import problem_with
from .hooks import called

Mode = Literal["inline", "structured", "hook"]
Schema = Mapping[str, Any] | type[BaseModel]

RESERVED = frozenset(
    {
        *TAGS,
        *("observation", "message", "messages", "history", "system", "user", "assistant", "tool"),
        *("extracted-values", "current-task", "suggested-response", "thread-title", "date"),
    }
)
SPEC_KEYS = ("name", "instructions", "schema", "include_previous", "retry_empty")

LONGEST_SLUG = 60

_KINDS: dict[str, type] = {
    "instructions": str,
    "schema": Mapping,
    "include_previous": bool,
    "retry_empty": bool,
}
_SLUG = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
_LIKE_JSON = re.compile(r'[\[{"\d-]|(?:true|false|null)$')


@dataclass(frozen=True)
class Extractor:
    """Describe one value to extract; ``slug``, made of the name, is what it is stored under.

    ``schema`` is a JSON schema or a pydantic model. ``on_extracted(value, context)``, sync or
    async, may return another value; a hook's ``value`` is what was observed. With
    ``include_previous`` the model sees the value until now; with ``retry_empty`` a structured
    one is asked for again when nothing was filled in. ``mode`` follows from what is given: a
    schema makes it structured. Raises ValueError.
    """

    name: str
    instructions: str = ""
    schema: Schema | None = None
    on_extracted: Callable[[Any, Any], Any] | None = None
    include_previous: bool = True
    retry_empty: bool = False
    mode: Mode | None = None
    slug: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slug", slug_of(self.name))
        object.__setattr__(self, "mode", self.mode or ("structured" if self.schema else "inline"))
        _check(self)


@dataclass(frozen=True)
class Extracted:
    """Hold the values extracted and, for each that failed, why; both by slug."""

    values: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: Extracted) -> Extracted:
        """Return both together; the other's word counts where both have one."""
        values = {k: v for k, v in self.values.items() if k not in other.failures}
        failures = {k: v for k, v in self.failures.items() if k not in other.values}
        return Extracted({**values, **other.values}, {**failures, **other.failures})


def slug_of(name: str) -> str:
    """Return the slug of an extractor's name. Raises ValueError."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError("An extractor must have a name.")
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", re.sub(r"[\"'`]", "", plain))
    slug = re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-")
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"The extractor's name {name!r} must have a letter first.")
    if len(slug) > LONGEST_SLUG:
        raise ValueError(f"The extractor's name {name!r} must be at most {LONGEST_SLUG} letters.")
    if slug in RESERVED:
        raise ValueError(f"The extractor's name {name!r} is taken: {slug} has a meaning here.")
    return slug


def _check(extractor: Extractor) -> None:
    name, mode = extractor.name, extractor.mode
    if mode == "hook":
        if extractor.on_extracted is None:
            raise ValueError(f"The hook extractor {name!r} must have on_extracted.")
        if extractor.instructions or extractor.schema is not None:
            raise ValueError(f"The hook extractor {name!r} takes no instructions and no schema.")
    elif not extractor.instructions.strip():
        raise ValueError(f"The extractor {name!r} must have instructions.")
    elif mode == "structured" and not extractor.schema:
        raise ValueError(f"The structured extractor {name!r} must have a schema.")


def resolve(extract: Iterable[str | Mapping[str, Any]]) -> tuple[Extractor, ...]:
    """Return the extractors meant by names of registered ones and by specs written out.

    A spec is ``{name, instructions, schema?, include_previous?, retry_empty?}``. Raises ValueError.
    """
    found = tuple(_registered(e) if isinstance(e, str) else _spelled_out(e) for e in extract)
    slugs = [extractor.slug for extractor in found]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise ValueError(f"There are two extractors called {slug}: give one another name.")
    return found


def registered() -> dict[str, Extractor]:
    """Return by slug the extractors that MEMORY_EXTRACTORS names. Raises ValueError."""
    found = [_imported(path) for path in getattr(settings, "MEMORY_EXTRACTORS", ())]
    return {extractor.slug: extractor for extractor in found}


def _imported(path: str) -> Extractor:
    try:
        found = import_string(path)
    except ImportError as error:
        raise ValueError(f"MEMORY_EXTRACTORS = {path}: nothing is there ({error})") from error
    if not isinstance(found, Extractor):
        raise ValueError(f"MEMORY_EXTRACTORS = {path}: is no memory.extraction.Extractor")
    return found


def _registered(name: str) -> Extractor:
    known = registered()
    try:
        return known[slug_of(name)]
    except KeyError:
        there = f"there are {', '.join(sorted(known))}" if known else "there are none"
        raise ValueError(f"No extractor {name!r} is registered; {there}.") from None


def _spelled_out(spec: object) -> Extractor:
    if not isinstance(spec, Mapping):
        raise ValueError(f"{spec!r} is neither a registered extractor's name nor a spec.")
    for key in spec:
        if key not in SPEC_KEYS:
            raise ValueError(f"{key}: an extractor's spec has only {', '.join(SPEC_KEYS)}.")
    for key, kind in _KINDS.items():
        if key in spec and not isinstance(spec[key], kind):
            raise ValueError(f"{key} = {spec[key]!r}: cannot be this in an extractor's spec.")
    if "name" not in spec:
        raise ValueError("name: an extractor must have a name.")
    return Extractor(**spec)


def to_write(extractors: Iterable[Extractor]) -> tuple[tuple[str, str], ...]:
    """Return what the Observer is to write besides, for the inline ones: slug and instructions."""
    return tuple((e.slug, e.instructions) for e in extractors if e.mode == "inline")


def written_before(extractors: Iterable[Extractor], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values until now as texts, of the inline extractors that want them shown."""
    return {
        e.slug: as_text(values[e.slug])
        for e in extractors
        if e.mode == "inline" and e.include_previous and e.slug in values
    }


def as_text(value: Any) -> str:
    """Return a value as a model reads it: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_values(extractors: Sequence[Extractor], written: Mapping[str, Any]) -> Extracted:
    """Return the values of the inline extractors that a reply held, by slug, checked.

    What looks like JSON is read as JSON; a text is otherwise left as it is.
    """
    values: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for extractor in extractors:
        if extractor.mode != "inline" or extractor.slug not in written:
            continue
        try:
            values[extractor.slug] = checked(extractor, read_value(written[extractor.slug]))
        except ValueError as error:
            failures[extractor.slug] = first_line(error)
    return Extracted(values, failures)


def read_value(written: Any) -> Any:
    """Return what a model wrote as the JSON it looks like, or as the text it is."""
    if not isinstance(written, str):
        return written
    text = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", written.strip())
    if _LIKE_JSON.match(text):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return written.strip()


def checked(extractor: Extractor, value: Any) -> Any:
    """Return a value that fits the extractor's schema, as JSON. Raises ValueError."""
    schema = extractor.schema
    if schema is None:
        return value
    if not isinstance(schema, Mapping):
        model = value if isinstance(value, BaseModel) else schema.model_validate(value)
        return model.model_dump(mode="json")
    if problem := problem_with(value, schema):
        raise ValueError(problem)
    return value


def sum_up(found: Iterable[Extracted]) -> Extracted:
    """Return several results as one."""
    total = Extracted()
    for each in found:
        total |= each
    return total


async def hand_over(
    extractors: Sequence[Extractor], extracted: Extracted, context: Any, *, observed: Any = None
) -> Extracted:
    """Call each ``on_extracted`` with its value, a hook's with ``observed``; return what holds.

    What it returns takes the value's place, None leaves it; one that raises loses only its own.
    """
    handed = [await _handed(e, extracted, context, observed) for e in extractors if e.on_extracted]
    return sum_up([extracted, *handed])


async def _handed(
    extractor: Extractor, extracted: Extracted, context: Any, observed: Any
) -> Extracted:
    slug, hook = extractor.slug, extractor.mode == "hook"
    if not hook and slug not in extracted.values:
        return Extracted()
    try:
        assert extractor.on_extracted is not None
        value = observed if hook else extracted.values[slug]
        result = await called(extractor.on_extracted, value, context)
    except Exception as error:  # noqa: BLE001 - one that fails costs the others nothing
        return Extracted(failures={slug: f"on_extracted of {slug} failed: {first_line(error)}"})
    return Extracted() if result is None else Extracted({slug: result})


def first_line(error: BaseException) -> str:
    """Return what an error says, as one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        return f"{place}: {first['msg']}" if place else first["msg"]
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
