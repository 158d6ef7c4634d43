import pytest
from asgiref.sync import sync_to_async

from agents.lab.faults import faults_of
from agents.lab.models import Entry, Lab
from agents.lab.recording import recording
from agents.lab.run import ask, run_lab
from agents.lab.scenario import read, step_of
from agents.lab.stage import wipe
from agents.models import AgentProfile, Turn
from agents.page import Scene
from memory.models import Cycle, Message, Thread

from .conftest import TEAM

pytestmark = pytest.mark.django_db(transaction=True)


async def run(lab, *items):
    await sync_to_async(ask)(lab, [step_of(item) for item in items])
    await run_lab(lab.pk)
    return [entry async for entry in lab.entries.order_by("pk")]


def switched(pane, **parts):
    return {"switch": {"pane": pane, **parts}}


def observed(pane):
    return {"observe": {"pane": pane}}


SAY = {"say": {"pane": "A", "text": "Our plumber is Ruth, and she comes on Tuesday at nine."}}
WAIT = {"wait": 20}


@sync_to_async
def faults(pane):
    return faults_of(Scene(pane.thread_id, None))


@pytest.mark.parametrize("how", ["fails", "empty"])
async def test_an_observer_that_does_wrong_writes_nothing_until_it_works_again(lab, how):
    entries = await run(lab, SAY, WAIT, switched("A", observer=how), observed("A"))

    assert [str(entry.state) for entry in entries] == ["done", "done", "done", "failed"]
    failed = await Cycle.objects.exclude(status="done").afirst()
    assert failed.status == "failed"
    assert failed.error
    assert not await Cycle.objects.filter(status="done").aexists()

    await Cycle.objects.aupdate(next_attempt_at=None)
    entries = await run(lab, switched("A", observer="works"), observed("A"))
    assert entries[-1].state == Entry.State.DONE
    assert await Cycle.objects.filter(status="done").aexists()


async def test_an_actor_that_fails_is_the_panes_own_and_has_its_agent_back_after(lab, pane):
    entries = await run(lab, switched("A", actor="fails"), SAY, WAIT)

    assert entries[0].text == "the actor fails from now on"
    turn = await Turn.objects.aget()
    assert turn.status == "failed"
    assert await faults(pane("A")) == "actor fails"
    assert await faults(pane("B")) == ""
    text = await sync_to_async(recording)(lab)
    assert "agent:" not in text

    await run(lab, switched("A", actor="works"), SAY, WAIT)
    assert (await Thread.objects.aget(pk=pane("A").thread_id)).agent == "lab"
    assert (await Turn.objects.order_by("number").alast()).status == "done"


async def test_what_a_lab_made_of_its_agent_is_of_labs_and_goes_with_it(lab):
    await run(lab, switched("A", actor="slow"))
    made = await AgentProfile.objects.aget(slug__startswith=lab.mark)
    assert made.is_of_lab
    assert made.model == "offline:slow"
    assert (await AgentProfile.objects.aget(slug="lab")).is_of_lab
    assert not AgentProfile(slug="lab-notes").is_of_lab

    await sync_to_async(wipe)(lab)
    assert not await AgentProfile.objects.filter(slug=made.slug).aexists()


async def test_a_pane_is_filled_with_prompts_and_answers_by_turns(lab, pane):
    entries = await run(lab, {"fill": {"pane": "A", "messages": 7}})

    assert entries[0].text == "7 messages of filler"
    rows = [row async for row in Message.objects.order_by("position")]
    assert [row.kind for row in rows] == ["request", "response"] * 3 + ["request"]
    assert {row.thread_id for row in rows} == {pane("A").thread_id}
    assert not await Turn.objects.aexists()


async def test_nothing_is_filled_in_between_a_prompt_and_its_answer(lab, pane):
    entries = await run(lab, SAY, {"fill": {"pane": "A"}})

    assert entries[-1].state == Entry.State.FAILED
    assert "wait first" in entries[-1].text
    assert not await Message.objects.filter(text__startswith="Filler").aexists()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("switch: {pane: A}", "name at least one of actor, observer, reflector"),
        ("switch: {pane: A, actor: empty}", "actor"),
        ("fill: {pane: A, messages: 501}", "messages"),
    ],
)
def test_a_scenario_says_what_is_wrong_with_these_steps(step, said):
    with pytest.raises(ValueError, match=said):
        read(f"{TEAM}steps:\n  - {step}\n")
    assert not Lab.objects.exists()
