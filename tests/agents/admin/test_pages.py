"""Every model has its pages, for administrators alone, and shows rows without changing them."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.admin.base import Rows
from agents.audit import AuditEntry
from agents.lab.models import Entry, Lab, Pane
from agents.models import Turn
from memory.models import (
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Revision,
)
from memory.services.note import note
from tests.memory.services.editing import condense, user

from .conftest import person

pytestmark = pytest.mark.django_db

OURS = [*apps.get_app_config("memory").get_models(), *apps.get_app_config("agents").get_models()]
ALL = [m for m in [*OURS, Lab, Pane, Entry] if not m._meta.auto_created]
HISTORY = {
    "message",
    "observation",
    "line",
    "revision",
    "cycle",
    "blob",
    "requestsnapshot",
    "turn",
    "cursor",
    "reflectionsource",
    "media",
    "memoryrecord",
    "auditentry",
    "agentchange",
    "signinfailure",
    "threadlook",
    "memorylook",
}


def listing(model):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def test_every_model_is_there():
    missing = [m.__name__ for m in ALL if m not in admin.site._registry]

    assert missing == []


@pytest.mark.parametrize("model", ALL, ids=lambda m: m.__name__)
def test_every_list_is_shown(client, world, model):
    assert client.get(listing(model)).status_code == 200


@pytest.mark.parametrize("model", ALL, ids=lambda m: m.__name__)
def test_every_search_is_answered(client, world, model):
    if admin.site._registry[model].search_fields:
        for text in ("bees", str(world.thread.pk), "<b>", "%_\\"):
            assert client.get(listing(model), {"q": text}).status_code == 200


@pytest.mark.parametrize("model", ALL, ids=lambda m: m.__name__)
def test_every_row_has_a_page(client, world, model):
    for row in model._default_manager.all()[:3]:
        page = reverse(
            f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk]
        )
        assert client.get(page).status_code == 200


@pytest.mark.parametrize(
    "model", [m for m in ALL if m._meta.model_name in HISTORY], ids=lambda m: m.__name__
)
def test_history_is_neither_added_to_nor_changed_nor_deleted(client, world, rf, root, model):
    shown = admin.site._registry[model]
    request = rf.get("/")
    request.user = root
    assert isinstance(shown, Rows)
    assert not shown.has_add_permission(request)
    assert not shown.has_change_permission(request)
    assert not shown.has_delete_permission(request)


@pytest.mark.parametrize("model", [Message, Observation, Revision], ids=lambda m: m.__name__)
def test_a_post_to_a_row_of_history_changes_nothing(client, world, model):
    row = model._default_manager.first()
    before = model._default_manager.filter(pk=row.pk).values().get()
    name = f"{model._meta.app_label}_{model._meta.model_name}"

    for page in ("change", "delete"):
        response = client.post(reverse(f"admin:{name}_{page}", args=[row.pk]), {"post": "yes"})
        assert response.status_code == 403
    assert client.post(reverse(f"admin:{name}_add"), {}).status_code == 403
    assert model._default_manager.filter(pk=row.pk).values().get() == before


@pytest.mark.parametrize(
    ("groups", "fields", "status"),
    [
        ((), {}, 403),
        (("operators",), {"is_staff": True}, 403),
        (("admins",), {}, 403),
        (("admins",), {"is_staff": True}, 200),
        ((), {"is_superuser": True, "is_staff": True}, 200),
        (("viewers",), {"is_staff": True}, 403),
    ],
)
def test_only_administrators_come_in(django_user_model, world, groups, fields, status):
    visitor = person(django_user_model, "eve", *groups, **fields)

    for page in ("/admin/", listing(Line), f"/admin/memory/thread/{world.thread.pk}/erase/"):
        assert visitor.get(page, follow=True).status_code in (status, 404 if status == 403 else 0)


def test_nobody_sees_more_than_where_to_sign_in(world):
    response = Client().get("/admin/", follow=True)

    assert response.redirect_chain[-1][0].startswith("/sign-in/?next=/admin/")


def policy(response):
    return {
        name: set(values.split())
        for name, _, values in (
            each.strip().partition(" ") for each in response["Content-Security-Policy"].split(";")
        )
    }


def test_only_the_admin_may_evaluate_scripts_and_set_styles(client, world):
    inside = policy(client.get("/admin/"))
    outside = policy(client.get("/account/tokens/"))

    assert inside.pop("script-src") == {"'self'", "'unsafe-eval'"}
    assert inside.pop("style-src") == {"'self'", "'unsafe-inline'"}
    assert outside.pop("script-src") == outside.pop("style-src") == {"'self'"}
    assert inside == outside


@pytest.mark.parametrize(
    "model", [Message, Line, Observation, Revision, MemoryRecord], ids=lambda m: m.__name__
)
def test_a_list_costs_as_much_however_long_it_is(
    client, world, model, django_assert_max_num_queries
):
    client.get(listing(model))
    with django_assert_max_num_queries(100) as few:
        client.get(listing(model))
    for number in range(20):
        note(world.record.pk, f"Note {number}")
        world.say(user(f"More {number}"))
    with django_assert_max_num_queries(len(few)):
        client.get(listing(model))


@pytest.mark.parametrize("tab", ["overview", "lines", "revisions", "buffered", "raw", "nonsense"])
def test_a_record_shows_each_tab_in_few_statements(
    client, world, tab, django_assert_max_num_queries
):
    for number in range(30):
        note(world.record.pk, f"Note {number}")
    page = reverse("admin:memory_memoryrecord_change", args=[world.record.pk])

    with django_assert_max_num_queries(16):
        response = client.get(page, {"tab": tab})

    assert response.status_code == 200
    assert 'aria-current="page"' in response.content.decode()


def test_the_lines_of_a_record_are_its_visible_lines(client, world):
    page = client.get(
        reverse("admin:memory_memoryrecord_change", args=[world.record.pk]), {"tab": "lines"}
    ).content.decode()

    assert "Ada keeps bees" in page
    assert "Ada asks about swarms" not in page


def test_long_lists_of_a_record_go_on_where_they_stopped(client, world):
    for number in range(110):
        note(world.record.pk, f"Note <{number}>")
    place = reverse("admin:memory_memoryrecord_change", args=[world.record.pk])

    for tab, last in (("lines", "Note &lt;109&gt;"), ("revisions", ">1</a>")):
        first = client.get(place, {"tab": tab})
        older = first.context["page"].older
        assert last not in first.content.decode()
        assert last in client.get(place, {"tab": tab, "from": older}).content.decode()


def test_hostile_text_stays_text(client, world):
    hostile = "<script>alert(1)</script>"
    Message.objects.update(text=hostile)
    Line.objects.update(text=hostile)
    Revision.objects.update(reason=hostile)
    world.thread.title = hostile
    world.thread.save()

    places = [listing(model) for model in (Message, Line, Revision, MemoryRecord)]
    places += [
        reverse("admin:memory_line_change", args=[world.note.pk]),
        reverse("admin:memory_message_change", args=[Message.objects.first().pk]),
        *(
            reverse("admin:memory_memoryrecord_change", args=[world.record.pk]) + f"?tab={tab}"
            for tab in ("overview", "lines", "revisions", "raw")
        ),
        "/admin/",
    ]
    for place in places:
        assert "<script>alert" not in client.get(place).content.decode(), place


def test_who_opens_anothers_rows_is_noted(client, world):
    client.get(reverse("admin:memory_line_change", args=[world.note.pk]))

    entry = AuditEntry.objects.get(action="read")
    assert (entry.actor_name, entry.resource_key) == ("root", "ada")
    assert entry.place.startswith("/admin/memory/line/")


def test_the_dashboard_shows_what_needs_attention_in_few_statements(
    client, world, django_assert_max_num_queries
):
    Cycle.objects.update(
        status="failed", error="The model is away.", next_attempt_at=timezone.now()
    )
    Turn.objects.update(status="failed", error="It broke.")

    with django_assert_max_num_queries(24):
        page = client.get("/admin/").content.decode()

    assert "The model is away." in page
    assert "It broke." in page
    assert "100.0%" in page


def test_the_dashboard_adds_up_what_was_kept_long_enough(client, db):
    for count in (3, 4):
        AuditEntry.objects.create(
            actor_name="the server", action="expire", numbers={"texts of requests and calls": count}
        )
    old = timezone.now() - timedelta(days=8)
    AuditEntry.objects.create(
        actor_name="the server", action="expire", numbers={"media": 1}, at=old
    )

    page = client.get("/admin/").content.decode()

    assert "<dt>Texts of requests and calls</dt><dd>7</dd>" in page
    assert "<dt>Media</dt>" not in page
    assert "the server" not in page


@pytest.mark.parametrize(("model", "said"), [("offline", "$0"), ("ollama:qwen3", "price unknown")])
def test_a_day_without_prices_is_free_only_where_all_of_it_was(client, world, model, said):
    Cycle.objects.update(model=model, cost=None)

    page = client.get("/admin/").content.decode()

    assert f'<td class="end">{said}</td>' in page


def test_an_empty_site_has_a_dashboard(client):
    page = client.get("/admin/").content.decode()

    assert "Nothing was removed" in page
    assert "other conversations for ever" in page

    assert "no cycle waits for another attempt" in page
    assert "No Observer or Reflector ran" in page


def test_reflections_and_their_sources_are_shown(client, world):
    condense(world, "r", [world.a, world.b], "All of it")

    assert ReflectionSource.objects.count() == 2
    assert client.get(listing(ReflectionSource)).status_code == 200
