"""What can be tried out in a pane beside talking: parts that do wrong, and a full conversation."""

import pytest
from asgiref.sync import async_to_sync

from agents.lab.models import Entry, Lab
from agents.lab.run import run_lab, settle, speak
from agents.models import Turn

from .test_views import pane, text, url

pytestmark = pytest.mark.usefixtures("operator")
__all__ = ["pane", "url"]
SCRIPT = {"HX-Request": "true"}


def steps():
    return [entry.step for entry in Entry.objects.order_by("pk")]


def test_parts_of_a_pane_are_switched(client, url):
    assert "Try what goes wrong" in text(client.get(url()))
    assert client.post(url("switch"), {"pane": "B", "actor": "slow", "observer": "fails"})
    assert steps() == [{"switch": {"pane": "B", "actor": "slow", "observer": "fails"}}]


def test_a_pane_is_filled(client, url):
    assert client.post(url("fill"), {"pane": "A", "messages": "30"}).status_code == 302
    assert steps() == [{"fill": {"pane": "A", "messages": 30}}]


def test_time_passes_for_all_panes(client, url):
    assert client.post(url("rest"), {"minutes": "120"}).status_code == 302
    assert steps() == [{"rest": {"minutes": 120.0}}]


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("fill", {"messages": "many"}, "1 to 500"),
        ("fill", {"messages": ""}, "1 to 500"),
        ("rest", {"minutes": "soon"}, "how many minutes"),
        ("rest", {"minutes": "0"}, "how many minutes"),
        ("switch", {}, "Choose what"),
        ("switch", {"actor": "empty"}, "Choose what"),
    ],
)
def test_what_cannot_be_tried_says_what_to_write(client, url, path, form, said):
    answer = client.post(url(path), {"pane": "A", **form}, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert said in text(answer)
    assert steps() == []


def test_agents_of_labs_are_offered_nowhere_else(client, ben, resource, profile, url):
    resource.members.add(ben)
    page = text(client.get("/chat/?resource=ada"))
    assert 'value="tester"' in page
    assert 'value="lab"' not in page


def test_whether_a_pane_is_led_on_by_another_is_a_step(client, url):
    assert client.post(url("bleed"), {"pane": "B", "by": "A"}).status_code == 302
    assert steps() == [{"bleed": {"pane": "B", "by": "A"}}]
    assert client.post(url("bleed"), {"pane": "B", "by": "X"}).status_code == 404


def test_a_fact_is_planted_in_a_pane_that_must_not_know_it(client, url):
    client.post(url("leak"), {"pane": "C", "fact": "0"})
    assert steps() == [{"note": {"pane": "C", "text": "Planted: Ruth"}}]
    assert client.post(url("leak"), {"pane": "C", "fact": "7"}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_planted_leak_is_offered_where_a_fact_is_isolated_and_turns_its_cell_red(
    client, url, lab, pane
):
    speak(pane("A"), "The plumber is Ruth.")
    async_to_sync(settle)([pane("A").thread_id], seconds=20)
    assert "Plant a leak<" in text(client.get(url()))
    client.post(url("leak"), {"pane": "C", "fact": "0"})
    async_to_sync(run_lab)(lab.pk)
    page = text(client.get(url()))
    assert "1 leak: “Ruth” in C." in page
    assert "Plant a leak<" not in page


def test_a_lab_says_what_it_cost_of_what_it_may_and_takes_nothing_past_that(client, url, lab, pane):
    assert "cost $0" not in text(client.get(url()))
    lab.source = f"{lab.source}\ncost_cap: 0.25\n"
    lab.save()
    assert "cost $0 of $0.25" in text(client.get(url()))
    Turn.objects.create(
        thread=pane("A").thread, number=1, prompt="x", status="done", model="m", cost="0.30",
        usage={"requests": 1, "input_tokens": 9},
    )  # fmt: skip
    answer = client.post(url("say"), {"pane": "A", "text": "Hello"}, headers=SCRIPT)
    assert answer.status_code == 422
    assert "The lab has cost $0.30; its cap is $0.25." in text(answer)


def test_a_cap_and_the_models_are_chosen_where_a_lab_is_laid_out_by_hand(client, operator):
    form = {"name": "Mine", "cost_cap": "0.5", "model": "server"}
    for letter in "AB":
        form |= {f"user-{letter}": letter, f"resource-{letter}": "home"}
    assert client.post("/lab/new", form).status_code == 302
    assert "cost_cap: 0.5" in Lab.objects.get().source
    assert "model: server" in Lab.objects.get().source
    answer = client.post("/lab/new", {**form, "cost_cap": "-1"})
    assert "cost_cap: input should be greater than 0" in text(answer)
