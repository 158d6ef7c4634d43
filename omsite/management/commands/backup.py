"""Save the database and the media in one file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from omsite.store import StoreError, save


class Command(BaseCommand):
    """Write a backup while the server goes on."""

    help = "Save the database and the media in one file, while the server goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="where to write; must not exist")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            save(file, settings.DATABASES["default"], Path(settings.MEDIA_ROOT))
        except StoreError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Saved {file} ({file.stat().st_size:,} bytes).")
