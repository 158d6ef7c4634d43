"""What labs made is no part of lists and sums, unless somebody asks for it."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agents.admin.labs import made_for_labs
from agents.lab.scenario import read
from agents.lab.stage import open_lab
from agents.models import RequestSnapshot, Turn
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)
from tests.memory.services.editing import beekeeping, condense

pytestmark = pytest.mark.django_db
MARKED = [
    *(Resource, Thread, Message, MemoryRecord, Line, Observation, Revision, Cursor),
    *(ReflectionSource, Cycle, Turn, RequestSnapshot, User),
]
SCENARIO = """\
name: A lab
panes:
  A: {user: Mallory, resource: team, thread: hives}
  B: {user: Trent, resource: team, thread: wax}
"""


@pytest.fixture
def lab(world):
    """Return a lab whose resource has a row in every table, as the real one has."""
    condense(world, "r", [world.a, world.b], "All of it")
    lab = open_lab(read(SCENARIO))
    made = beekeeping(lab.panes.first().resource)
    condense(made, "r", [made.a, made.b], "All of it")
    turn = Turn.objects.create(
        thread=made.thread, number=1, status="failed", prompt="Hm", error="The lab broke."
    )
    RequestSnapshot.objects.create(turn=turn, step=1, revision=1, blocks=[], total=9)
    return lab


def rows(client, model, **asked):
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    response = client.get(reverse(name), asked)
    return set(response.context["cl"].result_list), response.content.decode()


@pytest.mark.parametrize("model", MARKED, ids=lambda m: m.__name__)
def test_a_list_leaves_labs_out_and_shows_them_marked_when_asked(client, lab, model):
    everything = set(model._default_manager.all())
    of_lab = set(model._default_manager.filter(admin.site._registry[model].lab_rows))
    assert of_lab
    assert of_lab < everything

    real, page = rows(client, model)
    assert real == everything - of_lab
    assert 'data-state="lab"' not in page

    assert rows(client, model, lab="only")[0] == of_lab
    both, page = rows(client, model, lab="too")
    assert both == everything
    assert page.count('data-state="lab"') == len(of_lab)


def test_what_means_nothing_leaves_labs_out(client, lab):
    assert rows(client, Thread, lab="7")[0] == set(
        Thread.objects.exclude(made_for_labs("resource"))
    )


def test_the_dashboard_counts_labs_only_when_asked(client, lab):
    Cycle.objects.filter(made_for_labs("record__resource")).update(
        status="failed", error="Lost in the lab.", next_attempt_at=timezone.now()
    )

    page = client.get("/admin/").content.decode()
    for said in ("The lab broke.", "Lost in the lab."):
        assert said not in page
    assert "0.0%" in page

    page = client.get("/admin/", {"lab": "too"}).content.decode()
    for said in ("The lab broke.", "Lost in the lab."):
        assert said in page
    assert "50.0%" in page
