"""Ask for known holes in the locked packages: fail on one, pass with a note where nobody can say.

Usage: python -m tests.audit [LOCK]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOCK = "requirements.lock"
#: Each question has a timeout of its own, but there are as many as packages.
PATIENCE = 300.0
#: How pip-audit and the library it asks with say that nobody answered.
UNREACHABLE = re.compile(
    r"Could not connect|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|NameResolutionError"
    r"|Max retries exceeded|not redirecting properly"
)


@dataclass(frozen=True)
class Verdict:
    """Say whether the audit passes, and what it found."""

    code: int
    said: str


def judge(code: int, out: str, err: str) -> Verdict:
    """Return what the end of pip-audit, its JSON and its errors mean."""
    packages = _packages(out)
    if packages is None:
        if code and UNREACHABLE.search(err):
            return _nobody("the advisory service does not answer")
        return Verdict(code or 1, f"The audit itself failed:\n{err.strip()}")
    if holes := [line for package in packages for line in _holes(package)]:
        return Verdict(1, "\n".join(["These packages have known holes:", *holes]))
    # pip-audit calls it well when it was told of no package, as by a mirror without advisories.
    unknown = sorted(package["name"] for package in packages if "skip_reason" in package)
    if len(unknown) == len(packages):
        return _nobody("the service that answers knows none of the packages")
    if code:
        return Verdict(code, f"The audit itself failed:\n{err.strip()}")
    known = len(packages) - len(unknown)
    besides = f" Nothing is known of {', '.join(unknown)}." if unknown else ""
    return Verdict(0, f"No known holes in {known} packages.{besides}")


def _nobody(why: str) -> Verdict:
    return Verdict(0, f"NOT AUDITED: {why}. Run make audit again where it can be reached.")


def _packages(out: str) -> Sequence[Mapping[str, Any]] | None:
    try:
        found = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return None
    return found or None


def _holes(package: Mapping[str, Any]) -> Sequence[str]:
    return [
        f"  {package['name']} {package['version']}: {hole['id']}, mended in "
        f"{', '.join(hole.get('fix_versions', [])) or 'no version yet'}"
        for hole in package.get("vulns", [])
    ]


def ask(command: Sequence[str], patience: float = PATIENCE) -> Verdict:
    """Run pip-audit for so many seconds at most, and judge what came of it."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return _nobody(f"there was no answer within {patience:g} s")
    return judge(done.returncode, done.stdout, done.stderr)


def main(arguments: Sequence[str]) -> int:
    """Audit a lock and say what came of it; return the code to exit with."""
    lock = arguments[0] if arguments else LOCK
    # The lock has every package with its hash: nothing need be resolved or downloaded.
    command = [sys.executable, "-m", "pip_audit", "--requirement", lock, "--require-hashes"]
    command += ["--disable-pip", "--progress-spinner", "off", "--format", "json"]
    verdict = ask(command)
    print(f"{lock}: {verdict.said}")
    return verdict.code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
