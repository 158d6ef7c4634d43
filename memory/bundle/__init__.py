"""Carry a resource with all its history from site to site, in one file of JSON lines.

Every line is one row, named by its table; the first says what the file is, the last how many rows
it holds, so that half a file is known for one. Rows keep their ids, so that what comes in again
is known again: a row that is there already is skipped, and one that differs is a conflict.
"""

from .load import Conflict, Report, load
from .read import BadBundle, Bundle, read
from .tables import MEMORY, Table
from .write import write

__all__ = ["MEMORY", "BadBundle", "Bundle", "Conflict", "Report", "Table", "load", "read", "write"]
