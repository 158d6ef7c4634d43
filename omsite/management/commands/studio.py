"""Prepare the database and the demo world, then serve."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Do in one process all that a newcomer needs."""

    help = "Create or upgrade the database, make the demo world if there is none, and serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("demo", if_missing=True)
        call_command("serve", host=host, port=port)
