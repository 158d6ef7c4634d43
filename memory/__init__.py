"""Observational Memory: for the server, and for any pydantic-ai agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import ObservationalMemory, settled
    from .standalone import setup

__all__ = ["ObservationalMemory", "settled", "setup"]


def __getattr__(name: str) -> Any:
    """Import what a program asks for when it does: Django loads this package to find the app."""
    if name in ("ObservationalMemory", "settled"):
        from . import library

        return getattr(library, name)
    if name == "setup":
        from .standalone import setup

        return setup
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
