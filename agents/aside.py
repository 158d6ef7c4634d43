"""Reach the database for open pages through threads of their own.

Everything else of a process shares one database thread. What pages are shown is read beside it,
so that who sends a message does not wait until others have seen the last one; and so is whether
people may still see them, so that what needs no rendering waits for none.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from channels.db import database_sync_to_async

PAGES = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pages")
for_pages = partial(database_sync_to_async, thread_sensitive=False, executor=PAGES)

DOORS = ThreadPoolExecutor(max_workers=1, thread_name_prefix="doors")
at_the_door = partial(database_sync_to_async, thread_sensitive=False, executor=DOORS)
