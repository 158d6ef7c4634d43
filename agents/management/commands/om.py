"""Work with memory from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from agents.om import listing, quality, replay, status, verify

SUBCOMMANDS = {
    "replay": replay,
    "status": status,
    "list": listing,
    "verify": verify,
    "quality": quality,
}
DJANGO_OPTIONS = (
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
    "verbosity",
    "stdout",
    "stderr",
)


class Command(BaseCommand):
    """Lead to the subcommands."""

    help = "Replay conversations, look at memory, and check that it is sound."

    def add_arguments(self, parser: ArgumentParser) -> None:
        subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
        for name, module in SUBCOMMANDS.items():
            subparser = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
            module.add_arguments(subparser)

    def handle(self, *args: Any, subcommand: str, **options: Any) -> None:
        self.stdout.ending = ""  # Lines end where the subcommands end them.
        own = {name: value for name, value in options.items() if name not in DJANGO_OPTIONS}
        code = SUBCOMMANDS[subcommand].run(self.stdout, **own)
        if code:
            raise SystemExit(code)
