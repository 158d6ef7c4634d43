"""Tell what the ends of pip-audit mean; nobody is asked here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit import ask, judge, main

FINE = {"name": "django", "version": "5.2", "vulns": []}
UNKNOWN = {"name": "amqp", "skip_reason": "Dependency not found on PyPI and could not be audited"}
HOLE = {"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}


def found(*packages):
    return json.dumps({"dependencies": list(packages), "fixes": []})


def test_packages_without_holes_pass():
    verdict = judge(0, found(FINE, FINE), "No known vulnerabilities found")
    assert (verdict.code, verdict.said) == (0, "No known holes in 2 packages.")


def test_a_hole_fails_and_says_where_it_is_mended():
    verdict = judge(1, found(FINE, FINE | {"vulns": [HOLE]}), "")
    assert verdict.code == 1
    assert "django 5.2: PYSEC-1, mended in 2.1" in verdict.said


def test_a_hole_fails_whatever_code_was_returned():
    assert judge(0, found(FINE | {"vulns": [HOLE]}), "").code == 1


def test_a_hole_that_is_not_mended_says_so():
    verdict = judge(1, found(FINE | {"vulns": [HOLE | {"fix_versions": []}]}), "")
    assert "mended in no version yet" in verdict.said


@pytest.mark.parametrize(
    "error",
    [
        "ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded",
        "requests.exceptions.ReadTimeout: read timed out",
    ],
)
def test_without_a_network_it_passes_and_says_that_nothing_was_audited(error):
    verdict = judge(1, "", error)
    assert verdict.code == 0
    assert verdict.said.startswith("NOT AUDITED")


def test_a_service_that_knows_none_of_the_packages_audited_nothing():
    verdict = judge(0, found(UNKNOWN, UNKNOWN), "No known vulnerabilities found")
    assert verdict.code == 0
    assert verdict.said.startswith("NOT AUDITED")


def test_what_was_not_audited_among_others_is_named():
    assert "Nothing is known of amqp." in judge(0, found(FINE, UNKNOWN), "").said


@pytest.mark.parametrize(("code", "out"), [(1, ""), (2, "usage"), (0, ""), (0, found())])
def test_an_audit_that_failed_for_another_reason_fails(code, out):
    verdict = judge(code, out, "the lock cannot be read")
    assert verdict.code != 0
    assert "the lock cannot be read" in verdict.said


def test_a_lock_that_is_not_there_fails(tmp_path, capsys):
    assert main([str(tmp_path / "none.lock")]) != 0
    assert "none.lock" in capsys.readouterr().out


def test_the_target_runs_it():
    done = subprocess.run(["make", "-n", "audit"], capture_output=True, text=True, check=True)
    assert "-m tests.audit" in done.stdout


def test_a_service_that_never_answers_is_waited_for_no_longer_than_said():
    verdict = ask([sys.executable, "-c", "import time; time.sleep(60)"], patience=0.2)
    assert verdict.code == 0
    assert "NOT AUDITED: there was no answer within 0.2 s" in verdict.said


def test_what_the_audit_prints_is_judged():
    said = found(FINE | {"vulns": [HOLE]})
    assert ask([sys.executable, "-c", f"print({said!r})"]).code == 1


def test_every_submission_is_audited():
    assert "\nmake audit\n" in (Path(__file__).parents[1] / ".ci" / "run").read_text()
