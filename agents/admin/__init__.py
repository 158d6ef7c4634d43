"""Show every row to administrators, and let them change what may be changed, by the services."""

from . import configuration, conversations, memory, runs

__all__ = ["configuration", "conversations", "memory", "runs"]
