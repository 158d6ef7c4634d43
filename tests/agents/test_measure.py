"""Measure a small conversation from its file to its figures."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from agents.om.measure import measure, options_for, turns_of
from agents.services.thread import start
from memory.config import merged
from memory.quality import score
from memory.recordings import read

FACTS = (
    ("I adopted a greyhound called Biscuit yesterday.", "What a good name!"),
    ("The vet in Utrecht weighed Biscuit: 31 kilos.", "My allotment has leeks and beetroot now."),
    ("I sold my motorbike to Inge for 900 euros.", "I will visit Oslo next month with Tomas."),
    ("Biscuit chewed the violin case, the black one.", "I paid 40 euros for a wheelbarrow."),
)
"""What Nora and Piet said on one day after another."""

QUESTIONS = (
    ("When did Nora adopt Biscuit?", "3 May 2023", "D1:1", 2),
    ("When does Piet visit Oslo?", "June 2023", "D3:2", 2),
    ("What grows on Piet's allotment?", "leeks and beetroot", "D2:2", 4),
    ("What did Biscuit chew?", "the violin case", "D4:1", 4),
    ("What did Piet paint?", None, "D4:1", 5),
)


@pytest.fixture
def talk(tmp_path):
    """Return a file in LoCoMo's format with one conversation."""
    conversation = {"speaker_a": "Nora", "speaker_b": "Piet"}
    for n, (nora, piet) in enumerate(FACTS, 1):
        conversation[f"session_{n}_date_time"] = f"1:56 pm on {n + 3} May, 2023"
        conversation[f"session_{n}"] = [
            {"speaker": "Nora", "dia_id": f"D{n}:1", "text": nora},
            {"speaker": "Piet", "dia_id": f"D{n}:2", "text": piet},
        ]
    asked = [
        {"question": text, "evidence": [evidence], "category": category}
        | ({"answer": answer} if answer else {})
        for text, answer, evidence, category in QUESTIONS
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"sample_id": "t1", "conversation": conversation, "qa": asked}]))
    return path


@pytest.fixture
def notes(tmp_path):
    """Return a file in our own format, which asks nothing."""
    path = tmp_path / "notes.jsonl"
    rows = [
        {"at": "2025-06-01T08:00:00+00:00", "user": "Remember: the hive has a new queen."},
        {"at": "2025-06-01T08:00:09+00:00", "assistant": "Noted."},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def quality(*args):
    """Run the command and return what it wrote."""
    out = io.StringIO()
    call_command("om", "quality", *map(str, args), stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("tokens", [1, 500, 15_000, 120_000])
@pytest.mark.parametrize("ratio", [1.1, 4.2, 10, 40])
def test_every_size_and_ratio_gives_options_that_can_be(tokens, ratio):
    assert merged({}, options_for(tokens, ratio)).thresholds().observe < max(tokens, 11)


def test_two_people_are_told_apart_by_the_names_before_their_words(talk):
    nora, piet = turns_of(read(talk)[0])[:2]
    assert (nora.speaker, piet.speaker) == ("Nora", "Piet")
    assert nora.text == FACTS[0][0]
    assert (nora.session, str(nora.date)) == ("D1", "2023-05-04")


def test_without_names_the_roles_speak(notes):
    user, assistant = turns_of(read(notes)[0])
    assert (user.speaker, assistant.speaker) == ("user", "assistant")
    assert user.text == "Remember: the hive has a new queen."
    assert user.session == assistant.session == "2025-06-01"


@pytest.mark.django_db(transaction=True)
async def test_lines_cite_turns_that_hold_what_they_say(talk):
    measured = await measure(read(talk)[0], ratio=2)
    assert score([measured.remembered]).grounded > 90
    assert measured.cycles > 0
    assert measured.sent_tokens > 0


@pytest.mark.django_db(transaction=True)
async def test_what_is_not_observed_yet_is_seen_raw(talk):
    recording = read(talk)[0]
    measured = await measure(recording, ratio=2, options={"message_tokens": 100_000})
    lines = measured.remembered.lines
    assert measured.raw_messages == len(lines) == len(recording.messages)
    assert [line.text for line in lines] == [
        f"{t.speaker}: {t.text}" for t in measured.remembered.turns
    ]
    assert measured.sent_tokens == measured.raw_tokens


@pytest.mark.django_db(transaction=True)
def test_the_figures_of_each_conversation_and_of_all_are_written(talk):
    head, first, total = quality(talk, "--ratio", "2").splitlines()[:3]
    assert head.split()[:4] == ["conversation", "SUP", "X", "GRD"]
    assert first.split()[0] == "t1"
    assert total.split()[0] == "all"
    assert first.split()[1:] == total.split()[1:]


@pytest.mark.django_db(transaction=True)
def test_a_document_holds_the_same_figures_and_what_was_left_out(talk):
    document = json.loads(quality(talk, "--ratio", "2", "--json"))
    total = document["total"]
    assert (total["questions"], total["dated"]) == (4, 2)
    assert total["support"] > total["control"]
    assert total["real_ratio"] == pytest.approx(total["raw_tokens"] / total["sent_tokens"])
    assert document["notes"] == ["1 of 5 questions have no answer to look for and are left out."]


@pytest.mark.django_db(transaction=True)
def test_lines_are_written_with_their_day_their_sitting_and_their_turns(talk, tmp_path):
    path = tmp_path / "lines.jsonl"
    document = json.loads(quality(talk, "--lines", path, "--json"))
    rows = list(map(json.loads, path.read_text().splitlines()))
    assert len(rows) == document["total"]["lines"]
    assert {row["conv"] for row in rows} == {"t1"}
    assert all(f"D{row['sess']}" == row["ids"][0].partition(":")[0] for row in rows)
    assert all(row["date"].startswith("2023-05-0") for row in rows)


@pytest.mark.django_db(transaction=True)
def test_a_conversation_without_questions_is_measured_as_far_as_it_goes(notes):
    said = quality(notes)
    assert said.splitlines()[1].split()[1:3] == ["–", "–"]
    assert "No questions are asked" in said


@pytest.mark.django_db(transaction=True)
def test_a_database_in_use_is_left_alone(talk, resource, profile):
    start(resource, profile)
    with pytest.raises(CommandError, match="an empty one of its own"):
        quality(talk)


@pytest.mark.parametrize("ratio", ["1", "-3", "nan", "inf", "ten"])
def test_a_ratio_must_be_a_number_above_one(talk, ratio):
    with pytest.raises(CommandError, match="is no ratio"):
        quality(talk, f"--ratio={ratio}")


def test_a_file_that_is_no_conversation_is_refused_with_its_name(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text("")
    with pytest.raises(CommandError, match=r"empty\.json"):
        quality(path)


def test_a_conversation_that_the_file_lacks_is_refused_with_those_it_has(talk):
    with pytest.raises(CommandError, match="holds no conversation t9; it holds t1"):
        quality(talk, "--conversation", "t9")


@pytest.mark.django_db(transaction=True)
def test_lines_that_cannot_be_written_are_refused_with_the_file(talk, tmp_path):
    with pytest.raises(CommandError, match="cannot be written"):
        quality(talk, "--lines", tmp_path / "missing" / "lines.jsonl")
