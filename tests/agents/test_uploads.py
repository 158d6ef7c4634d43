import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from agents.models import Turn
from agents.services.attach import redeem, take
from memory import media
from memory.messages import user_prompt
from memory.models import Media, Message, Thread
from memory.services.append import append
from tests.agents.clients import client_of
from tests.memory.test_headers import gif, png

pytestmark = pytest.mark.django_db

PHOTO = BinaryContent(png(4, 3), media_type="image/png", identifier="photo.png")
NOTES = BinaryContent(b"<script>alert(1)</script>", media_type="text/plain", identifier="n.md")


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path)
    media._CACHE = media._Cache(media.CACHE_BYTES)


def a_file(name="photo.png", data=None):
    return SimpleUploadedFile(name, png(4, 3) if data is None else data)


def say(thread, *contents, text="look"):
    at = timezone.now()
    append(thread.pk, [user_prompt(text, at, attachments=contents)], at=at)
    return Message.objects.order_by("position").last()


def test_an_upload_answers_with_the_token_to_send_it_by(signed_in, thread):
    answer = signed_in.post(f"/chat/{thread.pk}/files", {"file": a_file()})
    assert answer.status_code == 200
    assert answer.json()["name"] == "photo.png"
    (attached,) = redeem(thread.pk, [answer.json()["token"]])
    assert attached["hash"] == Media.objects.get().hash


def test_an_upload_that_is_refused_says_why(signed_in, thread, settings):
    bad = signed_in.post(f"/chat/{thread.pk}/files", {"file": a_file("a.exe", b"\x00")})
    assert (bad.status_code, bad["Content-Type"]) == (422, "text/plain; charset=utf-8")
    assert "cannot be attached" in bad.content.decode()
    assert signed_in.post(f"/chat/{thread.pk}/files").status_code == 422
    settings.ATTACHMENT_BYTES = 10
    large = signed_in.post(f"/chat/{thread.pk}/files", {"file": a_file()})
    assert large.status_code == 413
    assert "is larger than" in large.content.decode()


def test_only_members_upload(cleo, thread):
    assert client_of(cleo).post(f"/chat/{thread.pk}/files", {"file": a_file()}).status_code == 404
    assert Client().post(f"/chat/{thread.pk}/files", {"file": a_file()}).status_code == 302
    assert not Media.objects.exists()


def test_an_upload_needs_the_form_it_came_from(ada, thread):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post(f"/chat/{thread.pk}/files", {"file": a_file()}).status_code == 403


def test_a_form_without_a_script_sends_its_files(signed_in, thread):
    fields = {"text": "look", "files": [a_file(), a_file("b.png", png(1, 1))]}
    assert signed_in.post(f"/chat/{thread.pk}/send", fields).status_code == 302
    turn = Turn.objects.get()
    assert turn.prompt == "look"
    assert [file["name"] for file in turn.attachments] == ["photo.png", "b.png"]


def test_a_form_may_hold_files_and_no_text(signed_in, thread):
    assert signed_in.post(f"/chat/{thread.pk}/send", {"files": [a_file()]}).status_code == 302
    assert Turn.objects.get().prompt == ""


def test_a_refused_form_comes_back_with_the_text_and_the_good_files(signed_in, thread):
    fields = {"text": "look <here>", "files": [a_file(), a_file("a.exe", b"\x00")]}
    answer = signed_in.post(f"/chat/{thread.pk}/send", fields)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "a.exe is of a kind that cannot be attached" in page
    assert "look &lt;here&gt;</textarea>" in page
    assert not Turn.objects.exists()
    token = re.search(r'name="attachments" value="([^"]+)"', page)[1]
    again = signed_in.post(f"/chat/{thread.pk}/send", {"text": "look", "attachments": token})
    assert again.status_code == 302
    assert [file["name"] for file in Turn.objects.get().attachments] == ["photo.png"]


def test_a_message_too_long_loses_nothing_typed(signed_in, thread):
    answer = signed_in.post(f"/chat/{thread.pk}/send", {"text": "x" * 200_001})
    assert answer.status_code == 422
    assert b"x" * 200_001 in answer.content


def test_a_script_sends_tokens_and_is_told_in_words(signed_in, thread):
    token = signed_in.post(f"/chat/{thread.pk}/files", {"file": a_file()}).json()["token"]
    scripted = {"HTTP_HX_REQUEST": "true"}
    fields = {"text": "look", "attachments": f"{token} made-up"}
    refused = signed_in.post(f"/chat/{thread.pk}/send", fields, **scripted)
    assert (refused.status_code, "not known here" in refused.content.decode()) == (422, True)
    fields["attachments"] = token
    assert signed_in.post(f"/chat/{thread.pk}/send", fields, **scripted).status_code == 204
    assert len(Turn.objects.get().attachments) == 1


def test_the_page_offers_files_with_and_without_a_script(signed_in, thread):
    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    assert 'enctype="multipart/form-data"' in page
    assert re.search(r'<input type="file" id="picker" name="files" multiple', page)
    assert "attach.js" in page


def test_files_can_be_switched_off(signed_in, thread, settings):
    settings.ATTACHMENTS_PER_MESSAGE = 0
    assert 'type="file"' not in signed_in.get(f"/chat/{thread.pk}/").content.decode()
    answer = signed_in.post(f"/chat/{thread.pk}/send", {"text": "look", "files": [a_file()]})
    assert answer.status_code == 422


def links(client, thread):
    page = client.get(f"/chat/{thread.pk}/").content.decode()
    return re.findall(rf'href="(/chat/{thread.pk}/files/[^"]+)"', page), page


def test_a_message_shows_its_picture_and_its_file(signed_in, thread):
    say(thread, PHOTO, NOTES)
    (photo, notes), page = links(signed_in, thread)
    assert f'<img src="{photo}" alt="photo.png" width="4" height="3"' in page
    assert "n.md" in page
    shown = signed_in.get(photo)
    assert (shown.status_code, shown["Content-Type"], shown.content) == (
        200,
        "image/png",
        PHOTO.data,
    )
    saved = signed_in.get(notes)
    assert saved["Content-Type"] == "application/octet-stream"
    assert saved["Content-Disposition"] == "attachment; filename*=UTF-8''n.md"
    assert saved["X-Content-Type-Options"] == "nosniff"
    assert saved.content == NOTES.data


SCRIPT = b"<script>alert(1)</script>"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'>" + SCRIPT + b"</svg>", None),
        ("page.html", b"<!doctype html>" + SCRIPT, None),
        ("page.pdf", b"<html>" + SCRIPT + b"%PDF-1.7", None),
        ("../../page.gif", gif(2, 2) + SCRIPT, "image/gif"),
        ("page.png", png(2, 2) + b"<html>" + SCRIPT, "image/png"),
    ],
)
def test_what_could_be_a_page_as_well_is_never_shown_as_one(
    signed_in, thread, name, data, media_type
):
    taken = take(SimpleUploadedFile(name, data, content_type="text/html"))
    say(thread, media.content_of(taken["hash"]))
    ((address,), _) = links(signed_in, thread)

    answer = signed_in.get(address)
    assert answer["Content-Type"] == (media_type or "application/octet-stream")
    assert answer["Content-Disposition"].startswith("inline" if media_type else "attachment")
    assert "/" not in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_a_file_is_shown_to_members_only_even_to_one_who_knows_its_address(
    signed_in, thread, ben, cleo
):
    say(thread, PHOTO)
    ((photo,), _) = links(signed_in, thread)
    for stranger in (ben, cleo):
        assert client_of(stranger).get(photo).status_code == 404
    assert Client().get(photo).status_code == 302
    other = Thread.objects.create(resource=thread.resource, agent="tester")
    assert signed_in.get(photo.replace(str(thread.pk), str(other.pk))).status_code == 404


@pytest.mark.parametrize("address", ["1/1", "2/0", "9999999999999999999/0"])
def test_what_is_no_file_of_a_message_is_not_found(signed_in, thread, address):
    say(thread, PHOTO)
    assert signed_in.get(f"/chat/{thread.pk}/files/{address}").status_code == 404


def test_a_browser_asks_again_and_is_spared_the_bytes(signed_in, thread):
    say(thread, PHOTO)
    ((photo,), _) = links(signed_in, thread)
    first = signed_in.get(photo)
    assert first["Cache-Control"] == "private, no-cache"
    again = signed_in.get(photo, HTTP_IF_NONE_MATCH=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")


def test_a_file_that_is_gone_says_so(signed_in, thread, django_capture_on_commit_callbacks):
    message = say(thread, PHOTO)
    ((photo,), _) = links(signed_in, thread)
    with django_capture_on_commit_callbacks(execute=True):
        media._remove(message.payload["media"][0]["hash"], media.Q())
    found, page = links(signed_in, thread)
    assert found == []
    assert "photo.png</b> <small>is no longer here" in page
    assert signed_in.get(photo).status_code == 404


def test_a_picture_from_a_tool_is_shown_with_the_tool_and_its_bytes_are_not(signed_in, thread):
    at = timezone.now()
    chart = BinaryContent(png(7, 7), media_type="image/png", identifier="chart")
    calls = [
        user_prompt("plot", at),
        ModelResponse(parts=[ToolCallPart("plot", {}, "1")], timestamp=at),
        ModelRequest(parts=[ToolReturnPart("plot", ["done", chart], "1", timestamp=at)]),
        ModelResponse(parts=[TextPart("Here."), FilePart(PHOTO)], timestamp=at),
    ]
    append(thread.pk, calls, at=at)
    found, page = links(signed_in, thread)
    assert [link.rsplit("/", 2)[1:] for link in found] == [["3", "0"], ["4", "0"]]
    assert "[chart]" in page
    assert signed_in.get(found[0]).content == chart.data


def test_bytes_stored_before_they_lay_outside_are_not_spilled_into_the_log(signed_in, thread):
    message = say(thread)
    content = ["look", {"kind": "binary", "data": "QUJD" * 100, "media_type": "image/png"}]
    message.payload["parts"][0]["content"] = content
    message.save()
    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    assert "QUJDQUJD" not in page
    assert "[image/png]" in page


def test_a_stored_gap_is_a_divider_and_nothing_the_person_said(signed_in, thread):
    at = timezone.now()
    append(thread.pk, [user_prompt("hello", at, gap="2 hours later, on a <Monday>")], at=at)
    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    assert re.search(r'<p class="gap"[^>]*><time[^>]*>2 hours later, on a &lt;Monday&gt;', page)
    assert "reminder" not in page
    assert page.count('data-by="user"') == 1


def test_a_waiting_message_tells_how_many_files_it_has(signed_in, thread):
    signed_in.post(f"/chat/{thread.pk}/send", {"text": "look", "files": [a_file()]})
    page = signed_in.get(f"/chat/{thread.pk}/").content.decode()
    assert "with 1 file<" in page


def test_a_hash_is_nowhere_on_a_page(signed_in, thread):
    say(thread, PHOTO)
    _, page = links(signed_in, thread)
    assert Media.objects.get().hash not in page
    assert Media.objects.get().hash not in json.dumps(list(Turn.objects.values("prompt")))
