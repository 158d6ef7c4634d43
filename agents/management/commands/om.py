"""Work with memory from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from agents.om import (
    activate,
    buffer,
    clear,
    compact,
    configure,
    edit,
    erase,
    expire,
    export,
    finalize,
    forget,
    fork,
    history,
    import_,
    import_mastra,
    lab,
    listing,
    note,
    observe,
    pin,
    quality,
    reflect,
    replay,
    restore,
    status,
    verify,
)

SUBCOMMANDS = {
    "replay": replay,
    "status": status,
    "list": listing,
    "verify": verify,
    "quality": quality,
    "history": history,
    "edit": edit,
    "note": note,
    "pin": pin,
    "forget": forget,
    "restore": restore,
    "fork": fork,
    "clear": clear,
    "erase": erase,
    "expire": expire,
    "observe": observe,
    "buffer": buffer,
    "activate": activate,
    "reflect": reflect,
    "compact": compact,
    "finalize": finalize,
    "configure": configure,
    "export": export,
    "import": import_,
    "lab": lab,
    "import-mastra": import_mastra,
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

    help = "Replay conversations, look at memory, change it, and check that it is sound."

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
