from dataclasses import replace
from pathlib import Path

import pytest

from memory.mastra import BadSource, load, read
from memory.models import Line, MemoryRecord, Message, Observation, Resource, Revision, Thread
from memory.services import history
from memory.services.look import look
from memory.verify import verify

pytestmark = pytest.mark.django_db(transaction=True)

FILE = Path(__file__).parent / "mastra.db"


@pytest.fixture
def source():
    return read(str(FILE))


@pytest.fixture
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def test_everything_that_mastra_kept_comes_over(source, media):
    report = load(source, agent="guide")
    assert report.stored
    assert (report.counts["threads"], report.counts["memories"]) == (3, 2)
    assert report.counts["messages"] == Message.objects.count() > len(source.messages)
    assert verify().violations == ()


def test_the_newest_generation_is_what_the_agent_sees(source, media):
    load(source, agent="guide")
    kitchen = Thread.objects.get(metadata__mastra="kitchen")
    view = look(kitchen.pk)
    newest = [each for each in source.records if each.thread == "kitchen"][-1]
    assert [line.text for line in view.lines] == [
        "User works on tickets",
        "Assistant looked up 0 tickets",
        "-> one of them was open",
        "The first is closed",
    ]
    assert all(line.text.removeprefix("-> ") in newest.text for line in view.lines)


def test_what_was_observed_stays_observed_and_the_rest_is_raw(source, media):
    load(source, agent="guide")
    for thread in Thread.objects.all():
        view = look(thread.pk)
        raw = range(view.observed_through + 1, thread.last_position + 1)
        assert [each.position for each in view.raw] == [*raw]
    kitchen = look(Thread.objects.get(metadata__mastra="kitchen").pk)
    assert 0 < kitchen.observed_through < kitchen.thread.last_position


def test_earlier_generations_are_history(source, media):
    load(source, agent="guide")
    record = MemoryRecord.objects.get(scope="thread")
    assert (record.revision, record.generation) == (3, 2)
    causes = Revision.objects.filter(record=record).order_by("number")
    assert list(causes.values_list("cause", flat=True)) == ["import", "reflect", "reflect"]
    first = {line.text for line in history.lines_at(record.pk, 1)}
    assert "User works on tickets 1674, 5973, 9829" in first


def test_a_memory_of_a_resource_is_shared_by_its_threads(source, media):
    load(source, agent="guide")
    record = MemoryRecord.objects.get(scope="resource")
    assert record.cursors.count() == 2
    assert Resource.objects.get(pk=record.resource_id).scope == "resource"
    assert Observation.objects.filter(record=record, kind="observation").count() == 2


def test_new_threads_come_into_a_shared_memory_that_is_here(source, media):
    first, *others = [each for each in source.threads if each.id != "kitchen"]
    load(replace(source, threads=(first,), records=()), agent="guide")
    shared = Thread.objects.get().resource
    before = MemoryRecord.objects.create(resource=shared, scope="resource")

    report = load(source, agent="guide")

    assert report.counts["threads"] == len(others) + 1
    assert any("has a shared memory here already" in note for note in report.notes)
    record = MemoryRecord.objects.get(scope="resource")
    assert (record.pk, record.revision) == (before.pk, before.revision)
    assert look(Thread.objects.get(metadata__mastra=others[0].id).pk).raw
    assert verify().violations == ()


def test_a_dry_run_counts_the_same_and_stores_nothing(source, media):
    counted = load(source, agent="guide", dry_run=True)
    assert not counted.stored
    assert not Thread.objects.exists()
    assert not Line.objects.exists()
    assert load(source, agent="guide").counts == counted.counts


def test_what_is_here_already_is_left_as_it_is(source, media):
    load(source, agent="guide")
    before = Message.objects.count()
    again = load(source, agent="guide")
    assert (again.counts["threads"], again.counts["threads here already"]) == (0, 3)
    assert Message.objects.count() == before


def test_buffered_chunks_are_raw_again_and_that_is_said(source, media):
    report = load(source, agent="guide")
    assert any("observed anew" in note for note in report.notes)


def test_lines_whose_messages_are_gone_become_a_note(source, media):
    bare = replace(source, messages=())
    load(bare, agent="guide")
    assert Observation.objects.filter(kind="note").exists()
    assert verify().violations == ()


def test_a_section_and_what_stands_beside_it_are_of_the_only_thread(source, media):
    kitchen = [each for each in source.records if each.thread == "kitchen"][:1]
    text = f'<thread id="kitchen">\n{kitchen[0].text}\n</thread>\n* 🔴 Ada hums'
    load(replace(source, records=[replace(kitchen[0], text=text)]), agent="guide")

    lines = look(Thread.objects.get(metadata__mastra="kitchen").pk).lines
    assert "Ada hums" in [line.text for line in lines]
    assert len(lines) > 1
    assert verify().violations == ()


def test_a_file_that_is_not_mastras_is_refused_in_a_sentence(tmp_path):
    other = tmp_path / "other.db"
    other.write_bytes(b"not a database, but long enough to be looked at " * 20)
    with pytest.raises(BadSource, match="holds no tables of Mastra"):
        read(str(other))
    with pytest.raises(BadSource, match="There is no file"):
        read(str(tmp_path / "none.db"))
