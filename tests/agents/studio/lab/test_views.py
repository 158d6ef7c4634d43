import json
import re

import pytest
import yaml

from agents.lab.models import Entry, Lab
from agents.lab.requests import next_request
from agents.lab.run import speak
from agents.models import Turn
from agents.services.begin import begin
from agents.studio.lab.reading import in_words
from memory.models import Line, Thread
from memory.services.look import look
from memory.services.note import note

LAB = "/lab/"


@pytest.fixture
def url(lab):
    """Return a function that returns an address of the lab."""
    return lambda rest="": f"/lab/{lab.pk}/{rest}"


@pytest.fixture
def pane(lab):
    panes = {each.letter: each for each in lab.panes.select_related("person", "thread")}
    return panes.__getitem__


def text(response):
    return " ".join(response.content.decode().split())


@pytest.mark.usefixtures("operator")
class TestAnOperator:
    def test_finds_the_scenarios_to_open_a_lab_with(self, client):
        page = text(client.get(LAB))
        assert "There is no lab yet." in page
        assert "Two users of one team, one outside" in page

    def test_opens_a_bundled_scenario_and_runs_it(self, client, operator):
        response = client.post("/lab/new", {"preset": "team-and-outsider", "run": "1"})
        lab = Lab.objects.get()
        assert response.headers["Location"] == f"/lab/{lab.pk}/"
        assert lab.created_by == operator
        assert lab.entries.waiting().count() == lab.entries.count() > 10

    def test_opens_one_without_running_it(self, client):
        client.post("/lab/new", {"preset": "team-and-outsider"})
        assert not Entry.objects.exists()

    def test_cannot_open_what_is_not_bundled(self, client):
        assert client.post("/lab/new", {"preset": "../x"}).status_code == 404

    def test_lays_one_out_by_hand(self, client):
        form = {"name": "Mine", "scope": "thread"}
        for letter, user in zip("AB", ("Ada", "Ben"), strict=True):
            form |= {f"user-{letter}": user, f"resource-{letter}": "home"}
        client.post("/lab/new", form)
        lab = Lab.objects.get()
        assert [str(pane) for pane in lab.panes.all()] == [
            "A · Ada · home / talk",
            "B · Ben · home / talk",
        ]
        assert lab.panes.first().resource.scope == "thread"

    def test_is_told_what_a_pane_lacks_and_keeps_what_was_typed(self, client):
        response = client.post("/lab/new", {"name": "Mine", "user-A": "Ada", "user-B": "Ben"})
        assert response.status_code == 422
        assert "Pane A: resource: field required" in text(response)
        assert 'value="Mine"' in text(response)

    def test_is_told_the_lines_of_a_wrong_scenario(self, client):
        response = client.post("/lab/new", {"source": "name: X\nscope: planet\npanes: {}"})
        assert response.status_code == 422
        assert "Line 2: scope: input should be" in text(response)
        assert "scope: planet" in text(response)

    def test_sees_every_pane_its_memory_and_who_may_open_it(self, client, url):
        page = text(client.get(url()))
        for words in ("lab data", "Shared memory of team", "Options changed", "shut out"):
            assert words in page
        assert page.count("shut out") == 4
        assert "No leak: 1 fact looked for in 3 panes. 1 of them nobody has said yet." in page

    def test_says_something_as_a_panes_person(self, client, url, pane):
        response = client.post(url("say"), {"pane": "A", "text": "The plumber is Ruth."})
        turn = Turn.objects.get()
        assert (turn.thread_id, turn.author) == (pane("A").thread_id, pane("A").person)
        assert response.headers["Location"] == url()
        assert Entry.objects.get().step == {"say": {"pane": "A", "text": "The plumber is Ruth."}}

    def test_is_told_why_nothing_was_said(self, client, url):
        response = client.post(url("say"), {"pane": "A", "text": "  "})
        assert response.status_code == 422
        assert "The message is empty." in text(response)
        scripted = client.post(
            url("say"), {"pane": "B", "text": ""}, headers={"HX-Request": "true"}
        )
        assert text(scripted).startswith('<div class="notice bad" role="alert"')

    def test_asks_for_a_broadcast_and_for_work_on_a_memory(self, client, url):
        client.post(url("broadcast"), {"text": "Hello all", "at_once": "1"})
        client.post(url("do/observe"), {"pane": "B"})
        client.post(url("do/check"), {"pane": "B"})
        client.post(url("collide"), {"pane": "A", "line": "fitter", "texts": ["one", "two"]})
        steps = list(Entry.objects.order_by("pk").values_list("step", flat=True))
        assert steps == [
            {"broadcast": {"text": "Hello all", "at_once": True}},
            {"observe": {"pane": "B"}},
            {"check": {"pane": "B"}},
            {"collide": {"pane": "A", "line": "fitter", "texts": ["one", "two"]}},
        ]

    def test_cannot_ask_for_what_nobody_does(self, client, url):
        assert client.post(url("do/explode"), {"pane": "A"}).status_code == 404
        assert client.post(url("do/observe"), {"pane": "D"}).status_code == 404
        assert client.post(url("say"), {"pane": "", "text": "x"}).status_code == 404

    def test_looks_for_a_fact_and_no_longer(self, client, url, lab):
        client.post(url("facts"), {"text": "  blue   door "})
        lab.refresh_from_db()
        assert [fact["text"] for fact in lab.facts] == ["Ruth", "blue door"]
        client.post(url("facts"), {"remove": "0"})
        lab.refresh_from_db()
        assert [fact["text"] for fact in lab.facts] == ["blue door"]
        assert client.post(url("facts"), {"text": "x"}).status_code == 422

    def test_runs_stops_and_sees_how_far_it_is(self, client, url, lab):
        client.post(url("run"))
        assert "1 step to go" in text(client.get(url()))
        client.post(url("stop"))
        assert lab.entries.get().state == Entry.State.SKIPPED

    def test_runs_other_steps_and_is_told_what_is_wrong_with_them(self, client, url, lab):
        source = yaml.safe_load(lab.source) | {"steps": [{"observe": "A"}, "wait"]}
        client.post(url("run"), {"source": yaml.safe_dump(source)})
        assert lab.entries.count() == 2
        source["panes"]["D"] = {"user": "Dora", "resource": "team"}
        response = client.post(url("run"), {"source": yaml.safe_dump(source)})
        assert response.status_code == 422
        assert "this lab has no pane D" in text(response)

    def test_downloads_what_was_done(self, client, url):
        client.post(url("say"), {"pane": "A", "text": "The plumber is Ruth."})
        response = client.get(url("recording.yaml"))
        assert "attachment" in response["Content-Disposition"]
        assert yaml.safe_load(response.content)["steps"] == [
            {"say": {"pane": "A", "text": "The plumber is Ruth."}}
        ]

    def test_wipes_a_lab(self, client, url):
        response = client.post(url("wipe"), follow=True)
        assert "was wiped: 3 people" in text(response)
        assert not Lab.objects.exists()
        assert not Thread.objects.exists()

    def test_begins_anew_with_the_same_panes(self, client, url, lab, pane):
        note(look(pane("A").thread_id).record.pk, "Ruth")
        response = client.post(url("reset"))
        again = Lab.objects.get()
        assert again.pk != lab.pk
        assert response.headers["Location"] == f"/lab/{again.pk}/"
        assert not Line.objects.exists()

    def test_is_asked_only_for_what_changed(self, client, url, pane):
        page = client.get(url())
        shown = dict(_etags(page.content.decode()))
        assert set(shown) == {"panes", "strips", "matrix", "runlog", "controls"}
        ask = {"X-Regions": json.dumps(shown)}
        assert client.get(url(), headers=ask).content == b""
        note(look(pane("C").thread_id).record.pk, "Gates are green")
        changed = client.get(url(), headers=ask).content.decode()
        assert 'hx-target="#strips"' in changed
        assert 'hx-target="#runlog"' not in changed


def _etags(html):
    return re.findall(r'id="([\w-]+)"[^>]*? data-etag="(\w+)"', html)


def test_a_leak_stands_out_in_words(client, operator, url, lab, pane):
    speak(pane("A"), "The plumber is Ruth.")
    begin(pane("A").thread_id)
    note(look(pane("C").thread_id).record.pk, "Ada's plumber is Ruth")
    page = text(client.get(url()))
    assert "1 leak: “Ruth” in C." in page
    assert '<p class="notice bad">1 leak' in page
    assert "shared as intended" in page
    assert any("Ruth" in place.text for place in next_request(pane("C").thread_id))


def test_who_is_no_operator_is_told_which_right_is_missing(client, ada, url):
    client.force_login(ada)
    for address in (LAB, url(), url("recording.yaml")):
        response = client.get(address)
        assert response.status_code == 403
        assert "use the lab" in text(response)
    assert client.post(url("wipe")).status_code == 403
    assert Lab.objects.exists()


def test_conversations_of_labs_are_left_out_of_other_lists(client, operator, lab):
    page = text(client.get("/chat/?resource=*"))
    assert "kitchen" not in page


def test_steps_are_told_in_words():
    assert in_words({"expect": {"pane": "C", "isolated": "Ruth"}}) == "expect C isolated “Ruth”"
    assert in_words({"say": {"pane": "A", "text": "hi"}}) == "say A “hi”"
    assert in_words({"wait": None}) == "wait"
    assert in_words({"broadcast": {"text": "hi", "at_once": True}}) == "broadcast “hi” at once"


def test_the_page_of_a_lab_takes_a_bounded_number_of_statements(
    client, operator, url, pane, django_assert_max_num_queries
):
    for number in range(12):
        for letter in "ABC":
            note(look(pane(letter).thread_id).record.pk, f"Fact {letter} {number}")
    client.get(url())
    with django_assert_max_num_queries(100):
        client.get(url())


def test_resources_of_labs_are_offered_nowhere_else(client, operator, lab, pane):
    note(look(pane("A").thread_id).record.pk, "The door is blue")
    assert lab.mark not in text(client.get("/scopes/", headers={"HX-Request": "true"}))
    assert lab.mark not in text(client.get("/chat/"))
    assert "The door is blue" not in text(client.get("/find/?q=door"))
