import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.lab.matrix import Place, Verdict, plain
from agents.lab.models import Entry
from agents.lab.requests import next_request, reader, seats_of
from agents.lab.run import LOST_AFTER, ask, at_once, run_lab, settle, skip, verdict
from agents.lab.scenario import read, step_of
from agents.lab.stage import open_lab, presets
from agents.models import Turn
from memory.models import Line
from memory.services.look import look
from tests.fakes import Models, user_texts

pytestmark = pytest.mark.django_db(transaction=True)


def steps(*items):
    return [step_of(item) for item in items]


def say(pane, text):
    return {"say": {"pane": pane, "text": text}}


def expect(pane, **check):
    return {"expect": {"pane": pane, **check}}


async def run(lab, *items, **how):
    await sync_to_async(ask)(lab, steps(*items))
    await run_lab(lab.pk, **how)
    return [entry async for entry in lab.entries.order_by("pk")]


def states(entries):
    return [str(entry.state) for entry in entries]


LONG = """Our plumber is Ruth. She comes on Tuesday at nine and brings two new taps, a hose and \
the bill for the boiler. Ben wants to know by Friday whether the boiler needs a new pump. The \
neighbour Mrs. Lindqvist keeps a spare key to the house since March."""
SAID = (say("A", "The plumber is Ruth."), {"wait": 20})


@pytest.mark.parametrize("name", [name for name, _ in presets()])
async def test_every_bundled_scenario_passes(name):
    scenario = dict(presets())[name]
    lab = await sync_to_async(open_lab)(scenario)
    await sync_to_async(ask)(lab, scenario.steps)
    failed = await run_lab(lab.pk)
    entries = [entry async for entry in lab.entries.order_by("pk")]
    assert failed == 0, [f"{e.step} {e.text}" for e in entries if e.state == "failed"]
    assert sum(entry.state == Entry.State.PASSED for entry in entries) >= 4


async def test_a_leak_planted_in_the_request_is_found_and_fails_the_run(lab):
    """The same run twice: as it is, and with a request builder that lets Ada's words slip."""

    def leaking(lab):
        honest = reader(lab)

        def read(seat):
            slip = [Place("messages 1", "By the way, Ruth is their plumber.")]
            return [*honest(seat), *(slip if seat.pane == "C" else [])]

        return read

    apart = expect("C", isolated="Ruth")
    honest = await run(lab, *SAID, apart)
    assert states(honest) == ["done", "done", "passed"]
    planted = await run(lab, apart, reading=leaking)
    assert planted[-1].state == Entry.State.FAILED
    assert planted[-1].text == "“Ruth” in C: leak (messages 1)"


async def test_a_leak_planted_in_the_rows_of_another_memory_is_found(lab, pane):
    await run(lab, *SAID, {"observe": "A"})
    await run(lab, say("C", "I wrote a letter to my aunt in Bergen today."), {"wait": 20})
    await run(lab, {"observe": "C"})
    record = (await sync_to_async(look)(pane("C").thread_id)).record
    line = await Line.objects.filter(observation__record=record).afirst()
    await Line.objects.filter(pk=line.pk).aupdate(text="The plumber is Ruth")
    judged = await sync_to_async(lambda: verdict(lab, "C", "Ruth", reader(lab)))()
    assert judged.verdict is Verdict.LEAK


async def test_the_request_searched_is_what_the_model_is_sent(lab, pane):
    """All a model receives with the next prompt was found before it, save the prompt itself."""
    models = Models()
    await run(lab, *SAID, say("B", "The lamp is green."), {"wait": 20}, resolve=models)
    await run(lab, {"note": {"pane": "B", "text": "Tea at five"}})
    searched = await sync_to_async(next_request)(pane("A").thread_id)
    texts = [plain(place.text) for place in searched]
    await run(lab, say("A", "And the tiles are blue."), {"wait": 20}, resolve=models)
    received = [plain(text) for text in user_texts(models.asked("actor")[-1])]
    new = [text for text in received if not any(text in known for known in texts)]
    assert new == ["and the tiles are blue."]
    assert any("the lamp is green." in text for text in received)
    assert any("tea at five" in text for text in received)


async def test_what_a_team_shares_reaches_its_other_conversation_only(lab):
    entries = await run(
        lab,
        *SAID,
        expect("A", contains="Ruth"),
        expect("B", shared="Ruth"),
        expect("C", lacks="Ruth"),
    )
    assert states(entries)[2:] == ["passed", "passed", "passed"]


async def test_what_nobody_said_is_not_taken_for_isolation(lab):
    (entry,) = await run(lab, expect("C", isolated="Ruth"))
    assert entry.state == Entry.State.FAILED
    assert "nobody said it" in entry.text


async def test_a_failed_expectation_lets_the_run_go_on(lab):
    entries = await run(lab, *SAID, expect("C", contains="Ruth"), expect("A", contains="Ruth"))
    assert states(entries)[2:] == ["failed", "passed"]


async def test_a_step_that_cannot_be_done_ends_the_run_and_says_why(lab):
    entries = await run(
        lab, {"edit": {"pane": "A", "line": "Ruth", "text": "Omar"}}, expect("A", contains="Omar")
    )
    assert states(entries) == ["failed", "skipped"]
    assert entries[0].text == "No visible line of pane A contains “Ruth”."


async def test_lines_are_edited_and_noted_as_the_panes_person(lab, pane):
    await run(lab, {"note": {"pane": "A", "text": "The plumber is Ruth"}})
    change = {"edit": {"pane": "B", "line": "plumber", "text": "The plumber is Omar"}}
    entries = await run(lab, change, expect("A", contains="Omar"))
    assert states(entries)[1:] == ["done", "passed"]
    record = (await sync_to_async(look)(pane("A").thread_id)).record
    latest = await record.revisions.select_related("author").alatest("number")
    assert latest.author == pane("B").person


async def test_messages_are_said_by_the_panes_person(lab, pane):
    await run(lab, {"broadcast": {"text": "Good morning."}}, {"wait": 20})
    turns = [t async for t in Turn.objects.order_by("pk").select_related("author")]
    assert {(turn.thread_id, turn.author) for turn in turns} == {
        (pane(letter).thread_id, pane(letter).person) for letter in "ABC"
    }
    assert {turn.status for turn in turns} == {Turn.Status.DONE}


async def test_operations_are_done_through_the_services_and_tell_what_they_did(lab, pane):
    asked = [{name: "A"} for name in ("buffer", "activate", "activate", "reflect")]
    entries = await run(lab, say("A", LONG), {"wait": 20}, *asked)
    assert states(entries)[2:] == ["done"] * 4
    assert "→ 0 raw tokens" in entries[3].text
    assert entries[4].text.endswith("Nothing is buffered.")


async def test_waiting_steps_can_be_left_out(lab):
    await sync_to_async(ask)(lab, steps(*SAID))
    assert await sync_to_async(skip)(lab) == 2
    assert await run_lab(lab.pk) == 0
    assert not await Turn.objects.aexists()


async def test_only_one_process_at_a_time_carries_out_a_lab(lab):
    await sync_to_async(ask)(lab, steps(*SAID))
    await lab.entries.acreate(state=Entry.State.RUNNING, started_at=timezone.now())
    await run_lab(lab.pk)
    assert not await Turn.objects.aexists()


async def test_a_run_whose_process_died_is_told_and_its_rest_left_out(lab):
    long_ago = timezone.now() - LOST_AFTER - timedelta(seconds=1)
    lost = await lab.entries.acreate(state=Entry.State.RUNNING, started_at=long_ago)
    await sync_to_async(ask)(lab, steps(*SAID))
    await run_lab(lab.pk)
    await lost.arefresh_from_db()
    assert (lost.state, lost.text) == (Entry.State.FAILED, "interrupted")
    assert states([e async for e in lab.entries.order_by("pk")]) == ["failed", "skipped", "skipped"]


async def test_waiting_ends_late_when_somebody_else_holds_a_turn(lab, pane):
    await Turn.objects.acreate(
        thread_id=pane("A").thread_id,
        number=1,
        status="running",
        lease_token="0" * 32,
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )
    assert not await settle([pane("A").thread_id], seconds=0.2)


async def test_calls_at_once_meet_before_any_begins():
    met = asyncio.Event()
    begun = []
    loop = asyncio.get_running_loop()

    def call(name):
        begun.append(name)
        if len(begun) == 3:
            loop.call_soon_threadsafe(met.set)

    await at_once([lambda n=name: call(n) for name in "ABC"])
    assert sorted(begun) == ["A", "B", "C"]
    await asyncio.wait_for(met.wait(), 5)


def test_the_layout_of_the_lab_says_who_shares_not_the_rows(lab, pane):
    seats = {seat.pane: seat for seat in seats_of(lab)}
    assert seats["A"].memory == seats["B"].memory != seats["C"].memory


async def test_a_lab_is_read_back_from_its_recording(lab):
    from agents.lab.recording import recording

    await run(lab, *SAID, expect("B", shared="Ruth"))
    again = read(await sync_to_async(recording)(lab))
    assert [step.written() for step in again.steps] == [
        say("A", "The plumber is Ruth."),
        {"wait": {"seconds": 20.0}},
        expect("B", shared="Ruth"),
    ]
    assert again.head.panes["C"].user == "Cleo"
    twin = await sync_to_async(open_lab)(again)
    await sync_to_async(ask)(twin, again.steps)
    assert await run_lab(twin.pk) == 0


def bill(lab, cost, model="m"):
    """Have an answer in pane A cost something; None stands for a price nobody knows."""
    thread = lab.panes.first().thread
    used = {"requests": 1, "input_tokens": 9}
    Turn.objects.create(
        thread=thread, number=1, prompt="x", status="done", model=model, cost=cost, usage=used
    )


@pytest.mark.parametrize(
    ("cost", "why"),
    [
        ("0.30", "The lab has cost $0.30; its cap is $0.25."),
        (None, "The cost cap of $0.25 cannot be kept: the price of 1 call is not known."),
    ],
)
async def test_a_lab_that_reached_its_cap_asks_no_model_and_leaves_the_rest_out(lab, cost, why):
    lab.source = f"{lab.source}\ncost_cap: 0.25\n"
    await lab.asave()
    await sync_to_async(bill)(lab, cost)
    entries = await run(lab, {"note": {"pane": "A", "text": "Free"}}, *SAID)
    assert states(entries) == ["done", "failed", "skipped"]
    assert entries[1].text == why


async def test_a_lab_below_its_cap_goes_on(lab):
    lab.source = f"{lab.source}\ncost_cap: 0.25\n"
    await lab.asave()
    await sync_to_async(bill)(lab, "0.20")
    assert states(await run(lab, *SAID)) == ["done", "done"]
