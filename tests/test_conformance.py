"""docs/conformance.md is complete, and names tests that exist and run."""

import re

import pytest

from tests.conformance import PAGE, PLAIN, Ran, cases, expected, marks_of, named

MOST_DIFFER = 40
CASES = 180
SLOW = "tests/crash/test_kills.py::test_a_replay_killed_ten_times_is_whole_and_clean"


def page():
    return PAGE.read_text(encoding="utf-8")


def test_every_case_has_one_row_in_order():
    assert [case.number for case in cases()] == list(range(1, CASES + 1))


def test_every_case_is_shown_by_tests_or_differs_in_a_matter_that_is_explained():
    matters = re.findall(r"^### (.+)$", page(), re.M)
    for case in cases():
        if case.matter:
            assert case.matter in matters, case.number
        else:
            assert case.tests, case.number


def test_every_matter_is_met_by_a_case_and_linked_where_it_stands():
    linked = set(re.findall(r"differs: \[([^]]+)\]\(#([\w-]+)\)", page()))
    assert {matter for matter, _ in linked} == set(re.findall(r"^### (.+)$", page(), re.M))
    for matter, anchor in linked:
        assert anchor == re.sub(r"[^\w -]", "", matter.lower()).replace(" ", "-")


def test_few_cases_differ_and_the_page_counts_them():
    differ = sum(bool(case.matter) for case in cases())

    assert differ <= MOST_DIFFER
    assert f"**{CASES - differ} of {CASES} cases are shown by tests; {differ} differ" in page()


def test_every_test_that_is_named_exists_and_is_never_left_out():
    for test in sorted(named()):
        marks = marks_of(test)
        assert marks is not None, test
        assert not marks & {"skip", "skipif", "xfail"}, test


def test_nothing_on_the_page_that_looks_like_a_test_escapes_the_check():
    written = set(re.findall(r"[\w/.]+::\w+", page()))
    assert written == named()


# How it is known that they ran


class Report:
    def __init__(self, nodeid, outcome="passed", when="call"):
        self.nodeid, self.outcome, self.when = nodeid, outcome, when


HERE = "tests/test_conformance.py::test_every_case_has_one_row_in_order"


def heard(*reports, tests=(HERE,), markers=PLAIN):
    ran = Ran(frozenset(tests))
    for report in reports:
        ran.pytest_runtest_logreport(report)
    return ran.wrong(markers)


def test_a_test_that_passed_ran_whatever_its_parameters():
    assert heard(Report(HERE, when="setup"), Report(HERE)) == []
    assert heard(Report(f"{HERE}[a]"), Report(f"{HERE}[b]")) == []


def test_a_test_that_was_skipped_did_not_run():
    assert heard(Report(HERE, "skipped", "setup")) == [f"{HERE} was skipped."]
    assert heard(Report(f"{HERE}[a]"), Report(f"{HERE}[b]", "skipped", "setup")) == [
        f"{HERE} was skipped."
    ]
    assert heard(Report(HERE, "skipped", "setup"), markers=None) == [f"{HERE} was skipped."]


@pytest.mark.parametrize(("markers", "missed"), [(PLAIN, True), ("", True), (None, False)])
def test_a_test_nobody_heard_of_did_not_run_where_everything_was_to(markers, missed):
    assert bool(heard(markers=markers)) is missed


def test_slow_tests_are_expected_in_their_own_run():
    tests = frozenset({HERE, SLOW})

    assert expected(tests, PLAIN) == {HERE}
    assert expected(tests, "slow") == {SLOW}
    assert expected(tests, "browser") == frozenset()
    assert expected(tests, "") == tests
    assert expected(tests, "slow or browser") == frozenset()


def test_what_is_no_test_is_known_as_none():
    assert marks_of("tests/test_conformance.py::test_that_is_not_there") is None
    assert marks_of("tests/no_such_file.py::test_it") is None
