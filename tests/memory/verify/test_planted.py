"""One violation of each invariant, planted behind everybody's back, is found and named.

Where the database itself refuses the plant, that is what is shown.
"""

import re
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

import memory.verify as verify_package
from memory.messages import dump
from memory.messages import load as load_message
from memory.models import (
    Line,
    MemoryRecord,
    Message,
    ReflectionSource,
    Resource,
)
from memory.verify import coverage, cycles, discarded, lines, messages, records, revisions, verify
from memory.verify.rows import load

from .conftest import answer, empty_world, result, user


def other(world):
    """Return another world of another resource."""
    return empty_world(Resource.objects.create(key="ben", name="Ben"))


def copy(row, **changes):
    """Store a row once more, with other values."""
    fields = {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}
    del fields["id"]
    return type(row).objects.create(**{**fields, **changes})


def covers_nothing_first(world):
    world.set(world.a, first_position=2)
    world.set(world.a0, first_position=2)


def a_gap(world):
    world.set(world.b, first_position=6)
    world.set(world.b0, first_position=6)


def without_b(world):
    ReflectionSource.objects.filter(observation=world.b).delete()
    world.b0.delete()
    world.b.delete()


def an_overlap(world):
    world.set(world.b, first_position=4)


def shown_out_of_order(world):
    world.set(world.a, since=7)


def shown_before_a_buffered_one(world):
    world.set(world.d, since=7, place=7)
    world.set(world.c, since=None)


def a_cut_pair(world):
    world.set(world.a, last_position=2)
    world.set(world.a0, last_position=2)


def a_cut_pair_that_is_only_buffered(world):
    payload = dump(result("c9"))
    payload["parts"][0]["part_kind"] = "tool-call"
    payload["parts"][0]["args"] = {}
    call = {**dump(answer("")), "parts": [payload["parts"][0]]}
    Message.objects.filter(thread=world.thread, position=10).update(payload=call)
    Message.objects.filter(thread=world.thread, position=11).update(payload=dump(result("c9")))


def another_thread(world):
    return empty_world(world.thread.resource).thread


def a_forgetful_thread(world):
    world.set(world.thread, remembers=False)


def a_second_open_record(world):
    MemoryRecord.objects.create(resource=world.thread.resource, thread=world.thread)


def a_fork(world, position=4):
    """Return a thread that says to be a copy of the world's up to a position."""
    fork = empty_world(world.thread.resource)
    fork.say(*[load_message(world.message(at).payload) for at in range(1, position + 1)])
    for at in range(1, position + 1):
        fork.set(fork.message(at), payload=world.message(at).payload)
    fork.set(fork.thread, parent=world.thread, fork_position=position)
    fork.thread.refresh_from_db()
    return fork


def other_words_in_a_fork(world):
    fork = a_fork(world)
    fork.set(fork.message(1), payload=world.message(5).payload)


def a_message_missing_from_a_fork(world):
    a_fork(world).message(1).delete()


def a_fork_that_covers_more(world):
    fork = a_fork(world)
    fork.say(user("More?"), answer("More."))
    fork.observe("f", 1, 6, "Beyond", since=fork.revise("fork"))
    fork.set(fork.f, cycle=None)


def a_fork_beyond_its_end(world):
    fork = a_fork(world)
    fork.set(fork.thread, fork_position=99)


def a_line_left_by_a_clear(world):
    world.record.epoch += 1
    number = world.revise("clear")
    Line.objects.filter(until=None, since__gt=0).exclude(pk=world.pinned.pk).update(until=number)


def a_pinned_line_condensed(world):
    number = world.revise("reflect")
    world.set(world.pinned, until=number)


def a_forgotten_line_that_is_back(world):
    number = world.revise("edit")
    world.succeed("back", world.n0, "Ada is a beekeeper", number)
    world.set(world.n0, until=6)


def a_line_that_rests_on_an_erased_message(world):
    payload = {**world.message(8).payload, "metadata": {"erased": True}}
    world.set(world.message(8), payload=payload)


def a_shown_row_that_was_discarded(world):
    memory = rows_of(world)
    memory.observations[world.c.pk] = {**memory.observations[world.c.pk], "kind": "discarded"}
    return discarded.check_rows(memory)


PLANTS = {
    "record.epoch": [lambda w: w.set(w.record, epoch=3)],
    "rows.kind": [lambda w: w.set(w.d, kind="thought", cycle=None)],
    "rows.note": [lambda w: w.set(w.n, thread=w.thread, first_position=1, last_position=2)],
    "rows.discarded": [lambda w: w.set(w.d, kind="discarded")],
    "forks.position": [a_fork_beyond_its_end],
    "forks.messages": [other_words_in_a_fork, a_message_missing_from_a_fork],
    "forks.range": [a_fork_that_covers_more],
    "lines.cleared": [a_line_left_by_a_clear],
    "lines.pinned": [a_pinned_line_condensed],
    "lines.again": [a_forgotten_line_that_is_back],
    "erased.lines": [a_line_that_rests_on_an_erased_message],
    "messages.position": [
        lambda w: w.set(w.thread, last_position=11),
    ],
    "messages.payload": [
        lambda w: w.set(w.message(1), payload={"kind": "request", "parts": [{"part_kind": "?"}]}),
    ],
    "messages.kind": [lambda w: w.set(w.message(1), kind="response")],
    "messages.tokens": [lambda w: w.set(w.message(1), tokens=1)],
    "messages.text": [lambda w: w.set(w.message(1), text="Something else")],
    "pairs.call": [
        lambda w: w.message(3).delete(),
        lambda w: w.set(w.message(3), payload=dump(result("another"))),
    ],
    "pairs.result": [
        lambda w: w.message(2).delete(),
        lambda w: w.set(w.message(12), payload=dump(result("none"))),
    ],
    "pairs.cut": [a_cut_pair, a_cut_pair_that_is_only_buffered],
    "coverage.range": [
        lambda w: w.set(w.d, last_position=99),
        lambda w: w.set(w.a, first_position=0),
    ],
    "coverage.tokens": [lambda w: w.set(w.a, message_tokens=1)],
    "coverage.overlap": [an_overlap],
    "coverage.gap": [a_gap, covers_nothing_first, without_b],
    "coverage.order": [shown_out_of_order, shown_before_a_buffered_one],
    "coverage.reading": [a_gap, an_overlap, shown_before_a_buffered_one],
    "cursor.missing": [lambda w: w.cursor.delete()],
    "cursor.place": [
        lambda w: w.set(w.cursor, buffered_through=11),
        lambda w: w.set(w.cursor, observed_through=6),
    ],
    "cursor.order": [lambda w: w.set(w.cursor, buffered_through=99)],
    "revisions.missing": [
        lambda w: w.revision(4).delete(),
        lambda w: w.set(w.record, revision=9),
    ],
    "revisions.beyond": [lambda w: w.set(w.record, revision=7)],
    "revisions.cause": [lambda w: w.set(w.revision(4), cause="whim")],
    "revisions.reference": [
        lambda w: w.set(w.c, since=99),
        lambda w: w.set(w.c, place=99),
        lambda w: w.set(w.pinned, since=99),
        lambda w: w.set(w.pinned, until=99),
    ],
    "revisions.matching": [
        lambda w: w.set(w.revision(1), cause="reflect"),
        lambda w: w.set(w.revision(3), cause="observe"),
        lambda w: w.set(w.revision(5), cause="edit"),
        lambda w: w.set(w.revision(4), cause="forget"),
        lambda w: w.set(w.revision(6), cause="note"),
    ],
    "revisions.empty": [
        lambda w: w.set(w.revision(6), cause="activate"),
        lambda w: w.set(w.revision(6), cause="reflect"),
    ],
    "revisions.tokens": [
        lambda w: w.set(w.revision(2), tokens_before=1),
        lambda w: w.set(w.revision(2), tokens_after=1),
    ],
    "lines.kind": [lambda w: w.set(w.a0, kind="urgent")],
    "lines.tokens": [lambda w: w.set(w.a0, tokens=99)],
    "lines.sources": [
        lambda w: w.set(w.a0, last_position=5),
    ],
    "lines.owner": [
        lambda w: w.set(w.d0, since=7),
        lambda w: w.set(w.c0, since=None, until=None),
        lambda w: w.set(w.pinned, since=1),
        lambda w: w.set(w.n0, since=None, until=None),
    ],
    "lines.successor": [
        lambda w: w.set(w.c0, until=None),
        lambda w: w.set(w.pinned, replaces=w.a0),
        lambda w: w.set(w.pinned, observation=other_note(w)),
    ],
    "lines.lost": [
        lambda w: w.set(w.pinned, replaces=None, since=7),
        lambda w: ReflectionSource.objects.filter(observation=w.b).delete(),
        lambda w: w.set(w.a0, until=4),
    ],
    "lines.sum": [lambda w: w.set(w.a, tokens=1), lambda w: w.a0.delete()],
    "reflections.range": [lambda w: w.set(w.r, first_position=1, last_position=6)],
    "reflections.sources": [
        lambda w: ReflectionSource.objects.filter(reflection=w.r).delete(),
        lambda w: ReflectionSource.objects.create(reflection=w.r, observation=w.d),
        lambda w: ReflectionSource.objects.create(reflection=w.r, observation=w.c),
        lambda w: ReflectionSource.objects.create(reflection=w.r, observation=other_note(w)),
        lambda w: ReflectionSource.objects.create(reflection=w.b, observation=w.a),
    ],
    "reflections.empty": [lambda w: w.r.lines.all().delete()],
    "reflections.place": [lambda w: w.set(w.r, place=3)],
    "reflections.waiting": [lambda w: w.reflect("w2", [w.c], "Waiting too")],
    "record.generation": [lambda w: w.set(w.record, generation=2)],
    "record.scope": [
        lambda w: w.set(w.record, resource=other(w).thread.resource),
        lambda w: w.set(w.d, thread=another_thread(w)),
        lambda w: w.set(w.cursor, thread=another_thread(w)),
        lambda w: w.set(w.d.cycle, thread=another_thread(w)),
    ],
    "record.remembers": [a_forgetful_thread],
    "cycles.status": [lambda w: w.set(w.d.cycle, status="asleep")],
    "cycles.kind": [lambda w: w.set(w.d.cycle, kind="dream")],
    "cycles.lane": [lambda w: w.set(w.d.cycle, lane="reflector")],
    "cycles.epoch": [lambda w: w.set(w.d.cycle, epoch=5)],
    "cycles.rows": [
        lambda w: w.set(w.d.cycle, status="running", finished_at=None),
        lambda w: w.set(w.d.cycle, status="failed"),
        lambda w: w.set(w.d, cycle=None),
        lambda w: w.set(w.d, cycle=w.r.cycle),
        lambda w: w.set(w.d, cycle=w.c.cycle),
        lambda w: w.set(w.d, cycle=other(w).cycle("buffer", first=9, last=10)),
    ],
    "cycles.revisions": [
        lambda w: w.set(w.revision(3), cycle=w.cycle("reflect", status="failed")),
        lambda w: w.set(w.revision(3), cycle=other(w).cycle("reflect")),
    ],
}


def other_note(world):
    """Return a note in another record."""
    elsewhere = other(world)
    return elsewhere.note("n", "Ben is not", elsewhere.revise("note"))


CASES = [
    pytest.param(invariant, plant, id=f"{invariant}-{number}")
    for invariant, plants in PLANTS.items()
    for number, plant in enumerate(plants, 1)
]


@pytest.mark.parametrize(("invariant", "plant"), CASES)
def test_a_planted_violation_is_found_and_named(world, found, invariant, plant):
    plant(world)

    sentence = found()[invariant]
    assert sentence.endswith(".")
    assert sentence[0].isupper()


def test_a_violation_names_its_rows(world):
    world.set(world.d, last_position=99)

    violation = next(v for v in verify().violations if v.invariant == "coverage.range")
    assert violation.rows == {"thread": world.thread.pk, "observation": world.d.pk}
    assert str(world.d.pk) in violation.sentence


def test_the_rows_between_two_ranges_are_named_at_the_revision_that_lost_them(world, found):
    a_gap(world)

    sentence = found()["coverage.reading"]
    assert sentence.startswith("At revision 2, messages 5 of thread")
    assert sentence.endswith("are neither covered nor raw.")


def test_the_summary_says_how_much_is_wrong(world):
    world.set(world.message(12), tokens=1)

    report = verify()
    assert not report.clean
    assert report.summary.startswith("Found 1 violation (1 thread,")


REFUSED = {
    "two messages at one position": lambda w: copy(w.message(1)),
    "a message at position 0": lambda w: w.set(w.message(1), position=0),
    "a range that ends before it begins": lambda w: w.set(w.a, last_position=0),
    "two observations that begin at one position": lambda w: copy(w.d, id=uuid7()),
    "a cursor observed beyond what is buffered": lambda w: w.set(w.cursor, observed_through=11),
    "two cursors of one thread": lambda w: copy(w.cursor),
    "a revision twice": lambda w: copy(w.revision(3)),
    "a line that ends before it begins": lambda w: w.set(w.pinned, until=7),
    "a line that ends before it was shown": lambda w: w.set(w.a0, since=None),
    "a line that rests on half a range": lambda w: w.set(w.a0, first_position=None),
    "a line whose sources are no range": lambda w: w.set(w.a0, last_position=0),
    "a source twice": lambda w: ReflectionSource.objects.create(reflection=w.r, observation=w.a),
    "a shown row without a place": lambda w: w.set(w.d, since=7),
    "a second open record": a_second_open_record,
    "a thread record without a thread": lambda w: w.set(w.record, thread=None),
    "two running cycles in one lane": lambda w: [
        w.cycle("buffer", first=11, last=12, status="running") for _ in range(2)
    ],
    "a finished cycle that is running": lambda w: w.set(w.d.cycle, status="running"),
    "a done cycle without an end": lambda w: w.set(w.d.cycle, finished_at=None),
}


@pytest.mark.parametrize("plant", REFUSED.values(), ids=REFUSED)
def test_the_database_refuses(world, found, plant):
    with pytest.raises(IntegrityError), transaction.atomic():
        plant(world)

    assert found() == {}


def rows_of(world):
    return load(MemoryRecord.objects.values().get(pk=world.record.pk))


def of_running(row):
    return {**row, "status": "running"}


def two_records(world):
    record = rows_of(world).record
    return records.check_open([record, {**record, "id": uuid7()}])


def a_revision_twice(world):
    memory = rows_of(world)
    memory.revisions.append(memory.revisions[2])
    return revisions.check_revisions(memory)


def two_cycles_in_a_lane(world):
    memory = rows_of(world)
    memory.cycles = {pk: of_running(row) for pk, row in memory.cycles.items()}
    return cycles.check_cycles(memory)


def a_cycle_that_is_done_and_was_interrupted(world):
    memory = rows_of(world)
    pk = world.d.cycle_id
    again = {"interrupted": True, "next_attempt_at": memory.cycles[pk]["finished_at"]}
    memory.cycles[pk] = {**memory.cycles[pk], **again}
    return cycles.check_cycles(memory)


def an_observed_cursor_beyond_the_buffered_one(world):
    memory = rows_of(world)
    memory.cursors = [{**memory.cursors[0], "observed_through": 11}]
    return coverage.check_coverage(memory, messages.scan(memory.threads[world.thread.pk]))


def a_line_closed_but_never_shown(world):
    memory = rows_of(world)
    memory.lines[world.a0.pk] = {**memory.lines[world.a0.pk], "since": None}
    return lines.check_lines(memory)


def a_line_that_rests_on_half_a_range(world):
    memory = rows_of(world)
    memory.lines[world.a0.pk] = {**memory.lines[world.a0.pk], "first_position": None}
    return lines.check_lines(memory)


WITHOUT_CONSTRAINTS = {
    "rows.discarded": a_shown_row_that_was_discarded,
    "lines.sources": a_line_that_rests_on_half_a_range,
    "lines.span": a_line_closed_but_never_shown,
    "record.open": two_records,
    "revisions.doubled": a_revision_twice,
    "cycles.finished": two_cycles_in_a_lane,
    "cycles.lane": two_cycles_in_a_lane,
    "cycles.interrupted": a_cycle_that_is_done_and_was_interrupted,
    "cycles.again": a_cycle_that_is_done_and_was_interrupted,
    "cursor.order": an_observed_cursor_beyond_the_buffered_one,
}


@pytest.mark.parametrize(("invariant", "check"), WITHOUT_CONSTRAINTS.items())
def test_what_the_database_refuses_would_be_found_too(world, invariant, check):
    assert invariant in {violation.invariant for violation in check(world)}


def test_every_invariant_has_a_plant():
    sources = Path(verify_package.__file__).parent.glob("*.py")
    named = {
        name
        for source in sources
        for name in re.findall(r'(?:iolation|found)\(\s*"([a-z]+\.[a-z]+)"', source.read_text())
    }
    of_files = {"media.file", "media.stray"}  # planted in test_media.py
    assert named == PLANTS.keys() | WITHOUT_CONSTRAINTS.keys() | of_files
