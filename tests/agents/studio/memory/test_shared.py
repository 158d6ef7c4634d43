"""The page of a memory that several conversations share."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.services.thread import start
from memory.messages import user_prompt
from memory.models import Line, MemoryRecord, Observation, Resource, Thread
from memory.services.append import append
from memory.services.edit import edit
from memory.services.look import look
from memory.services.note import note
from memory.services.shelve import hide


@pytest.fixture
def team(ada, profile):
    team = Resource.objects.create(key="team", name="The team", scope="resource")
    team.members.add(ada)
    return team


@pytest.fixture
def garden(team, profile):
    thread = start(team, profile, title="The garden")
    now = timezone.now()
    said = ModelResponse(parts=[TextPart("Figs like walls.")], timestamp=now)
    append(thread.pk, [user_prompt("Mara wants a fig tree.", now), said], at=now)
    record = look(thread.pk).record
    note(record.pk, "Mara wants a fig tree", thread_id=thread.pk)
    return thread


@pytest.fixture
def workshop(team, profile, garden):
    return start(team, profile, title="The workshop")


def test_a_line_of_another_conversation_names_it(here, garden, workshop):
    html = here.get(f"/memory/{workshop.pk}/").content.decode()

    assert "Shared by 2 conversations" in html
    assert re.search(rf'class="of" href="/chat/{garden.pk}/"[^>]*>The garden<', html)
    assert 'class="of"' not in here.get(f"/memory/{garden.pk}/").content.decode()


def test_lines_can_be_grouped_by_conversation(here, garden, workshop):
    note(look(workshop.pk).record.pk, "Tom needs the saw", thread_id=workshop.pk)

    html = here.get(f"/memory/{workshop.pk}/?group=thread").content.decode()

    assert re.findall(r"data-header>([^<]+)<", html) == ["The garden", "The workshop"]


def test_revisions_can_be_filtered_by_conversation(here, garden, workshop):
    note(look(workshop.pk).record.pk, "Tom needs the saw", thread_id=workshop.pk)

    html = here.get(f"/memory/{garden.pk}/?of={workshop.pk}").content.decode()

    assert re.findall(r'id="rev-(\d+)"', html) == ["2"]


def test_a_resource_shows_the_memory_its_conversations_share(here, garden, workshop):
    page = here.get("/memory/of/team/").content.decode()

    assert "Mara wants a fig tree" in page
    assert "Shared by 2 conversations" in page


def test_a_note_belongs_to_the_conversation_it_is_written_in(here, garden, workshop):
    here.post(f"/memory/{workshop.pk}/note", {"text": "Tom needs the saw"})

    row = Observation.objects.get(lines__text="Tom needs the saw")
    assert row.thread_id == workshop.pk


def test_the_messages_of_all_its_conversations_are_searched(here, garden, workshop):
    page = here.get(f"/memory/{workshop.pk}/?q=fig").content.decode()

    assert "message 1 in The garden" in page
    assert f"/chat/{garden.pk}/?from=1#message-1" in page


def test_a_cycle_is_tried_again_in_the_background_or_there_is_nothing_to_do(here, garden):
    script = {"HX-Request": "true"}

    assert here.post(f"/memory/{garden.pk}/observe", headers=script).status_code == 204


def conflict(here, record):
    """Save, without a script, what was typed on a line that somebody changed meanwhile."""
    line = Line.objects.get(observation__record=record, text="Mara wants a fig tree")
    edit(line.pk, "Mara wants a pear tree")
    fields = {"text": "Mara wants a plum tree", "kind": "medium", "expected": "1"}
    return here.post(f"/memory/lines/{line.pk}/edit", fields)


@pytest.mark.parametrize("other", ["deleted", "temporary", "its own memory"])
def test_a_conflict_is_shown_where_the_memory_is_whatever_was_said_last(
    here, team, profile, garden, other
):
    record = look(garden.pk).record
    later = start(team, profile, title="Later", temporary=other == "temporary")
    Thread.objects.filter(pk=later.pk).update(last_active_at=timezone.now() + timedelta(hours=1))
    if other == "deleted":
        hide(later.pk)
    elif other == "its own memory":
        MemoryRecord.objects.create(scope="thread", resource=team, thread=later)

    answer = conflict(here, record)

    assert answer.status_code == 409
    assert ">Mara wants a plum tree</textarea>" in answer.content.decode()
    assert "Mara wants a pear tree" in answer.content.decode()


def test_what_was_typed_is_there_though_no_conversation_is(here, garden):
    record = look(garden.pk).record
    hide(garden.pk)

    answer = conflict(here, record)

    assert answer.status_code == 409
    assert "Mara wants a plum tree" in answer.content.decode()
