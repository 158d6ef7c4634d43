"""Send every string of a file through chat, Observer and pages: python -m tests.hostile.run FILE.

The file is a JSON list of strings, or a text with one on each line. The database is a new one
in a folder that is removed again.
"""

import json
import logging
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

BATCH = 20


def strings_of(path):
    """Return the strings of a file, each once, those of nothing but blanks left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = json.loads(text) if path.suffix == ".json" else text.splitlines()
    return list(dict.fromkeys(each for each in found if each.strip()))


def main(path, folder):
    """Return 1 when anything ran, or was not shown as it was said."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "omsite.settings",
        "DATABASE_URL": f"sqlite:///{folder}/hostile.sqlite3",
        "REDIS_URL": "",
        "SECRET_KEY": "only for a trial",
        "ALLOWED_HOSTS": "testserver",
    }
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from tests.hostile.world import admin, faults, plant

    logging.disable()
    call_command("migrate", verbosity=0)
    owner, client = admin(), Client()
    client.force_login(owner)
    strings, failed, seen = strings_of(path), 0, 0
    for first in range(0, len(strings), BATCH):
        some = strings[first : first + BATCH]
        found, pages = faults(client, plant(some, owner), some)
        failed, seen = failed + len(found), seen + pages
        print(*found, sep="\n", end="\n" * bool(found))
        print(f"{first + len(some)} of {len(strings)} strings", file=sys.stderr)
    print(json.dumps({"strings": len(strings), "pages": seen, "faults": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        sys.exit(main(Path(sys.argv[1]), scratch))
