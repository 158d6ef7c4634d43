import io
import json

import pytest
from django.core.management import CommandError, call_command

from agents.lab.models import Lab

from .conftest import TEAM

pytestmark = pytest.mark.django_db(transaction=True)

RUN = """steps:
  - say: {pane: A, text: The plumber is Ruth.}
  - wait
  - expect: {pane: B, shared: Ruth}
  - expect: {pane: C, %s: Ruth}
"""


@pytest.fixture
def scenario(tmp_path):
    """Return a function that writes a scenario whose last check is the one given."""

    def write(check):
        file = tmp_path / f"{check}.yaml"
        file.write_text(TEAM + RUN % check)
        return str(file)

    return write


def om(*args):
    """Run the command; return its exit status and what it wrote."""
    out = io.StringIO()
    try:
        call_command("om", "lab", *args, stdout=out)
    except SystemExit as ended:
        return ended.code, out.getvalue()
    return 0, out.getvalue()


def test_a_scenario_that_holds_ends_with_0_and_leaves_nothing(scenario):
    code, said = om("run", scenario("isolated"))
    assert code == 0
    assert "PASS" in said
    assert said.endswith("Passed: 2 checks hold, 0 failed.\n")
    assert not Lab.objects.exists()


def test_a_scenario_that_fails_ends_with_1_and_says_where(scenario):
    code, said = om("run", scenario("shared"))
    assert code == 1
    assert "FAIL" in said
    assert "“Ruth” in C: isolated" in said


def test_several_scenarios_run_and_are_told_as_json(scenario):
    code, said = om("run", "same-user-two-threads", scenario("lacks"), "--json")
    ended = json.loads(said)["scenarios"]
    assert code == 0
    assert [each["failed"] for each in ended] == [0, 0]
    assert ended[1]["steps"][2]["state"] == "passed"


def test_a_lab_can_be_kept_for_its_page_and_wiped_later(scenario):
    om("run", scenario("isolated"), "--keep")
    assert Lab.objects.count() == 1
    assert om("wipe") == (0, "Wiped 1 lab.\n")
    assert not Lab.objects.exists()


def test_what_is_no_scenario_is_refused_with_lines(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("name: Wrong\npanes: {A: {user: Ada}}\n")
    with pytest.raises(CommandError, match=r"Line 2: panes.A.resource: field required"):
        om("run", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        om("run", str(tmp_path / "nothing.yaml"))


def test_the_bundled_scenarios_are_listed():
    assert "team-and-outsider: Two users of one team, one outside\n" in om("list")[1]
