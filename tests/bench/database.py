"""Give a benchmark a database of its own, migrated and gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from asgiref.sync import SyncToAsync
from django.db import connection, connections


@contextmanager
def own_database() -> Iterator[str]:
    """Use a new database beside the configured one; yield which kind it is."""
    before = connection.settings_dict["NAME"]
    name = f"omsite_bench_{os.getpid()}"
    with TemporaryDirectory() as folder:
        if connection.vendor == "sqlite":
            name = f"{folder}/{name}.sqlite3"
        connection.settings_dict["TEST"]["NAME"] = name
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield connection.vendor
        finally:
            # Coroutines reach the database through a thread of their own.
            SyncToAsync.single_thread_executor.submit(connections.close_all).result()
            connections.close_all()
            connection.creation.destroy_test_db(before, verbosity=0)
