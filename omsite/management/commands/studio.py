"""Prepare the database and the demo world, then serve."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from omsite.store import StoreError, require_sound, set_aside


class Command(BaseCommand):
    """Do in one process all that a newcomer needs."""

    help = "Create or upgrade the database, make the demo world if there is none, and serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--fresh",
            action="store_true",
            help="move the SQLite file aside, without deleting it, and begin an empty one",
        )

    def handle(self, *args: Any, host: str, port: int, fresh: bool, **options: Any) -> None:
        if fresh:
            self._set_aside()
        try:
            require_sound(settings.DATABASES["default"])
        except StoreError as error:
            raise CommandError(str(error)) from error
        call_command("migrate", verbosity=0, interactive=False)
        call_command("demo", if_missing=True)
        call_command("serve", host=host, port=port)

    def _set_aside(self) -> None:
        database = settings.DATABASES["default"]
        if not database["ENGINE"].endswith("sqlite3"):
            raise CommandError("--fresh is for a SQLite file. Name another DATABASE_URL instead.")
        path = Path(database["NAME"])
        if path.exists():
            self.stdout.write(f"The database that was there is now {set_aside(path)}")
