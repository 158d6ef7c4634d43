"""Share seeds among several interpreters, each with a database of its own."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

SUMS = ("seeds", "operations")
COUNTS = ("violations", "exercised")


def play_all(asked):
    """Play the seeds asked for in several interpreters; return the sum of what happened."""
    played = []
    with ThreadPoolExecutor(asked.jobs) as interpreters:
        for said in interpreters.map(lambda share: _said(asked, *share), shares(asked)):
            if not said:
                raise SystemExit("An interpreter ended without a word; see above.")
            played.append(json.loads(said))
    return added(played)


def shares(asked):
    """Return the first seed of each interpreter, and how many it plays."""
    each, more = divmod(asked.seeds, asked.jobs)
    counts = [each + (job < more) for job in range(asked.jobs)]
    return [(asked.first + sum(counts[:job]), count) for job, count in enumerate(counts) if count]


def added(played):
    """Return one summary for several."""
    counts = {name: sum((Counter(p[name]) for p in played), Counter()) for name in COUNTS}
    # A sum of counters leaves out what never happened.
    names = {name: sorted({key for p in played for key in p[name]}) for name in COUNTS}
    return {
        **{name: sum(p[name] for p in played) for name in SUMS},
        "processes": played[0]["processes"],
        **{name: {key: counts[name][key] for key in names[name]} for name in COUNTS},
    }


def _said(asked, first, seeds):
    """Let an interpreter play, tell what it finds as it finds it; return its last line."""
    command = [sys.executable, "-m", "tests.fuzz.run", f"--first={first}", f"--seeds={seeds}"]
    command += [f"--operations={asked.operations}", f"--processes={asked.processes}"]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as interpreter:
        for line in interpreter.stdout:
            if last:
                print(last, end="", flush=True)
            last = line
    return last
