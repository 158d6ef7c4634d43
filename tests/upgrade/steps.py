"""Migrate to each target a line of the input names, memory.0002_media say, and echo it then."""

import os
import sys

import django


def main() -> None:
    """Migrate one step after another, as manage.py migrate would."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    for line in sys.stdin:
        app, name = line.strip().split(".")
        MigrationExecutor(connection).migrate([(app, name)])
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
