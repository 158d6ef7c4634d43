"""Create the demo world."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from agents.demo import world
from agents.services.replay import Progress


class Command(BaseCommand):
    """Create people, agents and a conversation to look at."""

    help = "Create the demo world: users ada, ben and admin, three agents and a conversation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--if-missing", action="store_true", help="do nothing when there are users already"
        )

    def handle(self, *args: Any, if_missing: bool, **options: Any) -> None:
        if not (if_missing and world.exists()):
            world.create()
        thread = world.unfinished()
        if thread is not None:
            asyncio.run(world.converse(thread, self._report))
            self.stdout.write("\rThe demo world is ready: sign in as ada, ben or admin.      ")

    def _report(self, progress: Progress) -> None:
        if self.stdout.isatty():
            line = f"\rReplaying a conversation: {progress.stored} of {progress.total} messages "
            self.stdout.write(line, ending="")
            self.stdout.flush()
