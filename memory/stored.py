"""Stand for pictures and files whose bytes are kept elsewhere; needs no database itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Self

from pydantic_ai.messages import BinaryContent, BinaryImage

from memory.headers import measure

REFERENCES = "media"
"""The key of a payload that lists its references. Nothing a tool returns can write there."""

ESTIMATE = "token_estimate"
"""The key of ``vendor_metadata`` under which an application says what a file costs."""


class MediaMissing(OSError):
    """Say that the bytes of a picture or file are not in the storage any more."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Stand for bytes kept elsewhere; ``tokens`` is what an application said they cost."""

    hash: str
    size: int
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the reference as it is stored in a payload."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the reference that was stored; other keys are ignored."""
        return cls(**{name: stored[name] for name in cls.__slots__ if name in stored})


class _Stored:
    """Read the bytes when somebody asks for them, and compare by them."""

    def __getattr__(self, name: str) -> Any:
        # Called for what the object does not hold: of its fields, only the bytes.
        reference = self.__dict__.get("reference")
        if name != "data" or reference is None:
            raise AttributeError(name)
        # Only here: messages are counted and read without a database too.
        from memory.media import read

        return read(reference.hash)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryContent):
            return NotImplemented
        mine: Any = self
        same = mine.media_type == other.media_type
        same = same and mine.vendor_metadata == other.vendor_metadata
        return bool(same and mine.data == other.data)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        mine: Any = self
        return f"{type(self).__name__}({mine.identifier!r}, media_type={mine.media_type!r})"


class StoredContent(_Stored, BinaryContent):
    """Be a file of a stored message; its bytes are read when they are needed."""


class StoredImage(_Stored, BinaryImage):
    """Be a picture of a stored message; its bytes are read when they are needed."""


def stored(
    reference: Reference,
    *,
    media_type: str,
    name: str,
    vendor_metadata: dict[str, Any] | None = None,
) -> BinaryContent:
    """Return the content a reference stands for; its bytes are read at first use."""
    kind = StoredImage if media_type.startswith("image/") else StoredContent
    content: Any = object.__new__(kind)
    content.__dict__.update(
        media_type=media_type,
        vendor_metadata=vendor_metadata,
        _identifier=name,
        kind="binary",
        reference=reference,
    )
    known: BinaryContent = content
    return known


def reference_of(content: BinaryContent) -> Reference:
    """Return what stands for the content's bytes, without storing them."""
    known = content.__dict__.get("reference")
    if isinstance(known, Reference):
        return known
    data, extent = content.data, measure(content.data)
    digest = sha256(data).hexdigest()
    return Reference(
        digest, len(data), extent.width, extent.height, extent.pages, estimate_of(content)
    )


def estimate_of(content: Any) -> int | None:
    """Return what an application said a file costs; None when it said nothing usable."""
    given = (content.vendor_metadata or {}).get(ESTIMATE)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None
