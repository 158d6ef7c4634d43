"""Bring conversations and their memory over from Mastra's tables.

Threads, messages and observational memory records are read from a libsql file or a PostgreSQL
schema, and become rows of ours. What Mastra observed stays observed; what it had only
buffered is raw here and is observed anew, so that nothing is lost to how it was kept.
"""

from .load import Report, load
from .source import BadSource, Source, read

__all__ = ["BadSource", "Report", "Source", "load", "read"]
