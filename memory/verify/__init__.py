"""Recompute the invariants of memory from the raw tables, without the code that writes them."""

from .report import Report, Violation
from .run import Unknown, verify

__all__ = ["Report", "Unknown", "Violation", "verify"]
