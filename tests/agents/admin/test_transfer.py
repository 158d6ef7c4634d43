"""Export and import in the admin: tried first, stored only as tried."""

import io
import re

import pytest
from django.urls import reverse

from agents.audit import AuditEntry
from agents.bundle import TABLES
from agents.models import RequestSnapshot, Turn
from agents.services.erase import erase_resource
from memory.bundle import write
from memory.models import Blob, Resource, Thread
from memory.models.blob import digest
from memory.services.note import note
from tests.memory.services.editing import texts, wrong

pytestmark = pytest.mark.django_db

IMPORT = "/admin/memory/resource/import/"


def download(client, resource):
    page = reverse("admin:memory_resource_export_bundle", args=[resource.pk])
    return b"".join(client.get(page).streaming_content)


def upload(client, content, **more):
    file = io.BytesIO(content)
    file.name = "ada.jsonl"
    return client.post(IMPORT, {"file": file, **more})


def tried(page):
    return re.search(r'name="tried" value="([^"]+)"', page)[1]


def test_an_export_is_all_there_is_and_is_noted(client, world, resource):
    content = download(client, resource)

    assert content.decode().splitlines(keepends=True) == list(write(resource, TABLES))
    assert b'"table":"turn"' in content
    entry = AuditEntry.objects.get(action="export")
    assert (entry.actor_name, entry.resource_key) == ("root", "ada")
    assert entry.numbers == {"rows": len(content.splitlines()) - 2}


def test_an_import_is_tried_and_then_stored(client, world, resource):
    Blob.objects.keep(["Be brief."])
    RequestSnapshot.objects.update(
        blocks=[
            {"kind": "instructions", "source": "agent", "tokens": 2, "hash": digest("Be brief.")}
        ]
    )
    content = download(client, resource)
    erase_resource(resource)
    Blob.objects.all().delete()

    first = upload(client, content)
    page = first.content.decode()
    assert first.status_code == 200
    assert "Nothing is stored yet" in page
    assert not Resource.objects.exists()

    second = upload(client, content, tried=tried(page))
    assert "is stored." in second.content.decode()
    again = Resource.objects.get(key="ada")
    assert list(write(again, TABLES)) == content.decode().splitlines(keepends=True)
    assert Turn.objects.count() == 1
    assert Blob.objects.filter(text="Be brief.").exists()
    assert texts(world.record)[-1] == "Wax is dear"
    assert AuditEntry.objects.get(action="import").numbers["create"] > 10
    assert wrong() == []


def test_another_file_than_the_one_tried_is_not_stored(client, world, resource):
    content = download(client, resource)
    token = tried(upload(client, content).content.decode())
    Thread.objects.update(title="Other")
    other = download(client, resource)

    response = upload(client, other, tried=token)

    assert response.status_code == 422
    assert "not the file that was tried" in response.content.decode()
    assert upload(client, content, tried="forged").status_code == 422


def test_a_conflict_is_shown_and_nothing_can_be_stored(client, world, resource):
    content = download(client, resource)
    note(world.record.pk, "Later")

    page = upload(client, content).content.decode()

    assert "In conflict with what is here" in page
    assert 'name="tried"' not in page


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"not a bundle\n"])
def test_what_is_no_bundle_is_said_to_be_none(client, content):
    response = upload(client, content)

    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()


def test_waiting_prompts_come_along_with_their_files(client, world, resource):
    from memory import media

    kept = media.keep(b"Oak, 40 mm", media_type="text/plain", name="offer.md")
    attached = {"name": "offer.md", "media_type": "text/plain", **kept.as_json()}
    Turn.objects.create(thread=world.thread, number=2, prompt="Look", attachments=[attached])
    content = download(client, resource)
    Turn.objects.filter(number=2).delete()
    erase_resource(resource)
    media.destroy([kept.hash])

    page = upload(client, content).content.decode()
    upload(client, content, tried=tried(page))

    assert Turn.objects.get(number=2).attachments == [attached]
    assert media.read(kept.hash) == b"Oak, 40 mm"
