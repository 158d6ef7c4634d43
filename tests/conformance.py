"""Read docs/conformance.md, and see to it that the tests it names ran.

The plugin stands in the process that hears of every outcome: the only one, or the one that hands
out work to others. At the end of a run it compares what it heard with what is named.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"

ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.M)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
DIFFERS = re.compile(r"differs: \[([^]]+)\]\(#([\w-]+)\)")
APART = frozenset({"browser", "slow"})
PLAIN = "not browser and not slow"


@dataclass(frozen=True)
class Case:
    """Hold one row: its number, what it says, the tests that show it, or the matter it is not by.

    ``matter`` is the heading the row points at where memory differs; empty where it does not.
    """

    number: int
    says: str
    shown: str
    tests: tuple[str, ...]
    matter: str


def cases(page: Path = PAGE) -> list[Case]:
    """Return the rows of the page in its order."""
    return [
        _case(int(number), says, shown)
        for number, says, shown in ROW.findall(page.read_text(encoding="utf-8"))
    ]


def _case(number: int, says: str, shown: str) -> Case:
    differs = DIFFERS.match(shown)
    tests = tuple(f"{path}::{name}" for path, name in TEST.findall(shown))
    return Case(number, says, shown, tests, differs.group(1) if differs else "")


def named(page: Path = PAGE) -> frozenset[str]:
    """Return the ids of all tests that the page names."""
    return frozenset(test for case in cases(page) for test in case.tests)


@cache
def marks_of(test: str) -> frozenset[str] | None:
    """Return the marks of a test, its module's included; None where there is no such test."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return None
    marks, found = set(), None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            found = _marks(*node.decorator_list)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks |= _marks(node.value)
    return None if found is None else found | marks


def _marks(*nodes: ast.expr) -> frozenset[str]:
    written = " ".join(ast.unparse(node) for node in nodes)
    return frozenset(re.findall(r"\bmark\.(\w+)", written))


def expected(tests: frozenset[str], markers: str) -> frozenset[str]:
    """Return which of the tests a run of the whole suite with these markers must have run."""
    apart = {test: (marks_of(test) or frozenset()) & APART for test in tests}
    if markers == PLAIN:
        return frozenset(test for test, marks in apart.items() if not marks)
    if markers in APART:
        return frozenset(test for test, marks in apart.items() if markers in marks)
    return tests if not markers else frozenset()


class Ran:
    """Hear of every outcome of a run, and fail it where a named test was skipped or left out."""

    def __init__(self, tests: frozenset[str]) -> None:
        self.tests = tests
        self.outcomes: dict[str, set[str]] = defaultdict(set)
        self.missing: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of each test, whatever its parameters."""
        test = report.nodeid.partition("[")[0]
        if test in self.tests and (report.when == "call" or report.outcome == "skipped"):
            self.outcomes[test].add(report.outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run that went well otherwise."""
        if exitstatus != pytest.ExitCode.OK:
            return
        self.missing = self.wrong(_markers_of_a_whole_run(session.config))
        if self.missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def wrong(self, markers: str | None) -> list[str]:
        """Return a sentence for each named test that was skipped or, in a whole run, left out."""
        skipped = [test for test, seen in self.outcomes.items() if "skipped" in seen]
        whole = expected(self.tests, markers) if markers is not None else frozenset()
        left_out = [test for test in whole if test not in self.outcomes]
        return [
            *(f"{test} was skipped." for test in sorted(skipped)),
            *(f"{test} was not run." for test in sorted(left_out)),
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which."""
        if self.missing:
            terminalreporter.section("docs/conformance.md names tests that did not run", red=True)
            for sentence in self.missing:
                terminalreporter.line(sentence)


def _markers_of_a_whole_run(config: pytest.Config) -> str | None:
    """Return the marker expression of a run of everything there is; None where it is a part."""
    option = config.option
    part = (
        config.args_source != pytest.Config.ArgsSource.TESTPATHS
        or option.keyword
        or option.collectonly
        or option.maxfail
        or option.deselect
        or option.ignore
        or option.ignore_glob
        or getattr(option, "lf", False)
        or getattr(option, "failedfirst", False)
        or os.environ.get("TESTS_OF_SERVERS")
    )
    return None if part else option.markexpr


def listen(config: pytest.Config) -> None:
    """Listen where all outcomes are heard: not in a process that only runs some of them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ran(named()), "conformance")
