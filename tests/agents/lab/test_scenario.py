import pytest
import yaml
from hypothesis import given, strategies

from agents.lab.scenario import ScenarioError, read, step_of
from agents.lab.stage import presets
from agents.lab.steps import KINDS, Say

SMALL = """\
name: Small
panes:
  A: {user: Ada, resource: team}
  B: {user: Ben, resource: team}
steps:
  - say: {pane: A, text: hello}
  - wait
  - observe: B
"""


def wrong(text):
    with pytest.raises(ScenarioError) as error:
        read(text)
    return [str(problem) for problem in error.value.problems]


def test_a_scenario_is_read_with_its_steps_in_order():
    scenario = read(SMALL)
    assert [step.name for step in scenario.steps] == ["say", "wait", "observe"]
    assert scenario.steps[0] == Say(pane="A", text="hello")
    assert scenario.head.panes["A"].thread == "talk"


def test_a_scenario_written_is_the_same_when_read_again():
    for _, scenario in presets():
        assert read(scenario.yaml) == scenario


def test_every_kind_of_step_that_is_written_is_the_same_when_read_again():
    bare = {"pane": "A", "text": "said", "line": "said", "isolated": "said", "actor": "slow"}
    bare |= {"by": "B", "texts": ["one", "two"], "minutes": 90}
    for kind in KINDS.values():
        step = kind(**{name: bare[name] for name in kind.model_fields if name in bare})
        (item,) = yaml.safe_load(yaml.safe_dump([step.written()]))
        assert step_of(item) == step


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (("say: {pane: A", "say: {pane: E"), 6, "say.pane: input should be 'A', 'B', 'C' or 'D'"),
        (("say: {pane: A, text: hello}", "say: {pane: A}"), 6, "say.text: field required"),
        (("observe: B", "observe: D"), 8, "there is no pane D"),
        (("- wait", "- await"), 7, "write one of say, broadcast"),
        (("- wait", "- wait: long"), 7, "wait.seconds: input should be a valid number"),
        (("name: Small", "nam: Small"), 1, "nam: extra inputs are not permitted"),
        (("  B: {user: Ben, resource: team}\n", ""), 3, "panes: dictionary should have at least 2"),
        (("name: Small", "name: Small\nscope: planet"), 2, "scope: input should be 'resource'"),
        (("name: Small", "name: Small\noptions: {message_tokens: 0}"), 2, "message_tokens"),
        (("name: Small", "name: Small\noptions:\n  scope: thread"), 3, "stands beside"),
        (
            ("name: Small", "name: Small\nfacts:\n  - Ruth\n  - {text: Ben, pane: C}"),
            4,
            "no pane C",
        ),
        (("name: Small", "name: [Small"), 2, "expected ',' or ']'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(change, line, said):
    found = wrong(SMALL.replace(*change))
    assert any(each.startswith(f"Line {line}: ") and said in each for each in found), found


def test_all_that_is_wrong_is_told_at_once():
    text = SMALL.replace("observe: B", "observe: D").replace("- wait", "- await")
    assert [each.split(":")[0] for each in wrong(text)] == ["Line 7", "Line 8"]


def test_an_expectation_names_exactly_one_check():
    both = SMALL + "  - expect: {pane: A, shared: Ruth, isolated: Ruth}\n"
    assert wrong(both) == ["Line 9: expect: name exactly one of isolated, shared, contains, lacks"]


@pytest.mark.parametrize("text", ["", "- a list", "42", "a: &b [*b]", "!!python/object:os {}"])
def test_what_is_no_scenario_is_refused_with_a_line(text):
    assert wrong(text)[0].startswith("Line ")


def told(text):
    """Return what is wrong with a scenario; None when nothing is."""
    try:
        read(text)
    except ScenarioError as error:
        return error.problems
    return None


@given(strategies.text(max_size=200))
def test_any_text_is_read_or_refused_with_lines(text):
    found = told(text)
    assert found is None or len(found) > 0


def test_the_bundled_scenarios_show_two_of_a_team_and_one_outside():
    named = dict(presets())
    panes = named["team-and-outsider"].head.panes
    assert len({spec.user for spec in panes.values()}) == 3
    assert panes["A"].resource == panes["B"].resource != panes["C"].resource
