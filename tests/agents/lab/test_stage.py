import pytest
from django.contrib.auth import get_user_model

from agents.access import threads_for
from agents.lab.models import Lab
from agents.lab.run import speak
from agents.lab.scenario import ScenarioError, read
from agents.lab.stage import open_lab, preset, presets, wipe
from agents.models import AgentProfile, Turn
from agents.services.begin import begin
from memory.models import MemoryRecord, Message, Resource, Thread
from memory.services.change import Refused
from memory.services.look import look
from memory.services.note import note

from .conftest import TEAM

ROWS = (Lab, Resource, Thread, MemoryRecord, Message, Turn, get_user_model())


def counts():
    return {model.__name__: model._default_manager.count() for model in ROWS}


def test_a_lab_has_its_own_people_resources_and_threads(lab, pane):
    assert [str(each) for each in lab.panes.all()] == [
        "A · Ada · team / kitchen",
        "B · Ben · team / garden",
        "C · Cleo · Cleo / letters",
    ]
    assert pane("A").resource_id == pane("B").resource_id != pane("C").resource_id
    assert {each.is_lab for each in Thread.objects.all()} == {True}
    assert not pane("A").person.has_usable_password()
    assert not pane("A").person.is_active


def test_the_same_name_is_the_same_person_and_thread(db):
    panes = """
  A: {user: Ada, resource: team, thread: one}
  B: {user: Ada, resource: team, thread: one}"""
    lab = open_lab(read(f"name: Twice\npanes: {panes}"))
    first, second = lab.panes.all()
    assert (first.person_id, first.thread_id) == (second.person_id, second.thread_id)


def test_who_is_outside_a_team_may_not_open_its_conversations(lab, pane):
    for letter, seen in {"A": {"A", "B"}, "B": {"A", "B"}, "C": {"C"}}.items():
        threads = set(threads_for(pane(letter).person, lab=True).values_list("pk", flat=True))
        assert threads == {pane(each).thread_id for each in seen}


def test_conversations_of_a_team_share_one_memory_with_the_scenarios_options(db):
    lab = open_lab(read(TEAM + "options: {message_tokens: 777}\n"))
    first, second, third = (look(pane.thread_id) for pane in lab.panes.all())
    assert first.record.pk == second.record.pk != third.record.pk
    assert {view.options.message_tokens for view in (first, second, third)} == {777}
    assert first.options.observer_model == "offline"


def test_in_thread_scope_each_conversation_has_a_memory_of_its_own(db):
    lab = open_lab(read(TEAM + "scope: thread\n"))
    records = {look(pane.thread_id).record.pk for pane in lab.panes.all()}
    assert len(records) == 3


def test_an_agent_that_is_not_there_is_named(db):
    text = TEAM.replace("thread: kitchen", "thread: kitchen, agent: chef")
    with pytest.raises(ScenarioError, match="there is no agent chef"):
        open_lab(read(text))
    assert not Lab.objects.exists()


def test_a_wipe_leaves_nothing_of_a_lab_and_everything_else(thread, profile):
    before = counts()
    lab = open_lab(read(TEAM))
    panes = list(lab.panes.select_related("person", "thread"))
    for each in panes:
        speak(each, "The plumber is Ruth.")
        note(look(each.thread_id).record.pk, "Ruth", thread_id=each.thread_id)
    begin(panes[0].thread_id)
    Turn.objects.update(status="done", lease_token=None, lease_expires_at=None)
    gone = wipe(lab)
    assert counts() == before
    assert gone["people"] == 3
    assert gone["resources"] == 2
    assert AgentProfile.objects.filter(slug="lab").exists()


def test_a_wipe_withdraws_what_waits(lab, pane):
    speak(pane("A"), "The plumber is Ruth.")
    wipe(lab)
    assert not Turn.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_wipe_waits_for_an_answer_under_way_and_says_so_when_it_takes_long(lab, pane):
    speak(pane("A"), "The plumber is Ruth.")
    running = begin(pane("A").thread_id)
    with pytest.raises(Refused, match="still being written"):
        wipe(lab, seconds=0.1)
    running.turn.refresh_from_db()
    assert running.turn.stop_requested
    assert Lab.objects.exists()


def test_bundled_scenarios_are_found_by_name(db):
    assert {name for name, _ in presets()} >= {"team-and-outsider", "same-user-two-threads"}
    text, scenario = preset("team-and-outsider")
    assert read(text) == scenario
    assert preset("../secrets") is None


def test_people_whose_names_look_alike_are_still_two(db):
    text = TEAM.replace("user: Ben", "user: Ada!").replace("user: Cleo", "user: 李")
    lab = open_lab(read(text))
    names = {pane.person.username.partition(".")[0] for pane in lab.panes.all()}
    assert names == {"ada", "ada1", "person"}
    assert wipe(lab)["people"] == 3
