"""Play fifty seeds of each kind, as CI does: in one process on SQLite, in four on PostgreSQL.

Nothing may be violated, and everything must have happened.
"""

import os
import subprocess
import sys

from tests.servers import DATABASE, missing

SEEDS = 50


def main():
    """Return 1 when anything was violated, never happened, or could not be played."""
    failed = fuzz(url="")
    if absent := missing():
        print(f"No seed was played on PostgreSQL: {absent} does not answer.")
        return failed or bool(os.environ.get("CI"))
    return fuzz("--processes", 4, url=DATABASE) or failed


def fuzz(*arguments, url):
    """Play seeds on a database; return 1 when they did not go well."""
    command = [sys.executable, "-m", "tests.fuzz.run", f"--seeds={SEEDS}", "--all-exercised"]
    command += ["--jobs", str(os.cpu_count() or 1), *map(str, arguments)]
    return subprocess.call(command, env={**os.environ, "DATABASE_URL": url}) != 0


if __name__ == "__main__":
    sys.exit(main())
