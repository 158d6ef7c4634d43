"""Create the demo world."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from agents.demo import world


class Command(BaseCommand):
    """Create people, agents and a conversation to look at."""

    help = "Create the demo world: users ada, ben and admin, three agents and a conversation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--if-missing", action="store_true", help="do nothing when there are users already"
        )

    def handle(self, *args: Any, if_missing: bool, **options: Any) -> None:
        if if_missing and world.exists():
            return
        world.create()
        self.stdout.write("The demo world is ready.")
