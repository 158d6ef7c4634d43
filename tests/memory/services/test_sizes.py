from datetime import datetime
from importlib import import_module
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.utils import timezone

from memory.models import Line, Observation, Resource, Revision
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.look import look
from memory.services.note import note
from memory.services.request import memory_text
from memory.services.sizes import move_to_zone, recount_resource, tokens_at
from memory.tokens import count

from .editing import beekeeping, line, wrong
from .play import buffer_all, request, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(resource):
    world = beekeeping(resource)
    edit(world.a0.pk, "Ada asked for noon")
    forget(line(world.record, "Ada keeps bees").pk)
    note(world.record.pk, "Wax is dear")
    return world


def body(view):
    text, _ = memory_text(view, timezone.now())
    return text.split("<observations>\n", 1)[1].rsplit("\n</observations>", 1)[0]


def test_the_gauge_says_what_the_observations_cost_as_they_are_sent(thread):
    talk(thread, 12)
    buffer_all(thread)
    request(thread)
    view = look(thread.pk)
    sent = count(body(view))

    assert len(view.lines) > 5
    assert abs(view.tokens - sent) <= 0.02 * sent
    assert Revision.objects.get().tokens_after == view.tokens


def test_rows_counted_by_their_text_alone_are_counted_anew(world):
    wanted = stored()
    for each in Line.objects.all():
        Line.objects.filter(pk=each.pk).update(tokens=count(each.text))
    Observation.objects.update(tokens=1)
    Revision.objects.update(tokens_before=1, tokens_after=1)
    assert wrong()

    import_module("memory.migrations.0009_count_lines_as_sent").count_anew(apps, None)

    assert stored() == wanted
    assert wrong() == []


def test_another_time_zone_moves_days_and_so_the_size(world):
    Line.objects.update(said_at=None)
    Line.objects.filter(text="Wax is dear").update(said_at=timezone.now())
    Resource.objects.update(time_zone="Pacific/Kiritimati")
    recount_resource(Resource.objects.get().pk)

    latest = Revision.objects.order_by("-number").first()
    assert latest.tokens_after == tokens_at(world.record.pk, latest.number)
    assert wrong() == []


def test_a_line_whose_hour_nobody_gave_keeps_its_day_in_another_time_zone(world):
    berlin, tokyo = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")
    told = datetime(2026, 5, 7, 14, 30, tzinfo=berlin)
    Line.objects.update(said_at=told)
    Line.objects.filter(text="Wax is dear").update(said_at=datetime(2026, 5, 7, tzinfo=berlin))
    Resource.objects.update(time_zone="Asia/Tokyo")

    move_to_zone(Resource.objects.get().pk, berlin)

    moved = Line.objects.get(text="Wax is dear")
    assert moved.said_at == datetime(2026, 5, 7, tzinfo=tokyo)
    assert set(Line.objects.exclude(pk=moved.pk).values_list("said_at", flat=True)) == {told}
    assert wrong() == []


def stored():
    return (
        list(Line.objects.order_by("pk").values_list("pk", "tokens")),
        list(Observation.objects.order_by("pk").values_list("pk", "tokens")),
        list(Revision.objects.order_by("number").values_list("tokens_before", "tokens_after")),
    )
