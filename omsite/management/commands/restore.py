"""Bring back what the backup command saved."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from omsite.store import StoreError, restore


class Command(BaseCommand):
    """Read a backup into a database that is empty, or is to be replaced."""

    help = "Bring back what backup saved. Stop the server first."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace",
            action="store_true",
            help="where a database is there: move a SQLite file aside, replace PostgreSQL's tables",
        )

    def handle(self, *args: Any, file: Path, replace: bool, **options: Any) -> None:
        connections.close_all()
        try:
            said = restore(
                file, settings.DATABASES["default"], Path(settings.MEDIA_ROOT), replace=replace
            )
        except StoreError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored {file}. {said}".strip())
        self.stdout.write("Run manage.py migrate if the backup is of an earlier release.")
