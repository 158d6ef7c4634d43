import copy
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    FilePart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory import media
from memory.detach import present
from memory.messages import dump, load, parts_of, plain_text, user_prompt
from memory.models import Media
from memory.stored import StoredContent, StoredImage
from memory.tokens import count, count_message

from .test_headers import pdf, png

pytestmark = pytest.mark.django_db

AT = datetime(2024, 5, 8, 13, 56, tzinfo=UTC)
PICTURE = png(40, 30)
PHOTO = BinaryImage(PICTURE, media_type="image/png", identifier="photo.png")
NOTES = BinaryContent(b"Buy oak.", media_type="text/plain", identifier="notes.md")


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path)
    media._CACHE = media._Cache(media.CACHE_BYTES)


def files():
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def messages():
    chart = BinaryImage(png(5, 5), media_type="image/png", identifier="chart")
    return [
        user_prompt("look", AT, attachments=[PHOTO, NOTES]),
        user_prompt("look", AT, attachments=[PHOTO], gap="2 hours later"),
        ModelRequest(parts=[ToolReturnPart("plot", ["done", chart], "1", timestamp=AT)]),
        ModelRequest(parts=[ToolReturnPart("plot", chart, "1", timestamp=AT)]),
        ModelRequest(
            parts=[ToolReturnPart("plot", {"all": [{"one": chart}], "n": 1}, "1", timestamp=AT)]
        ),
        ModelResponse(parts=[TextPart("Here."), FilePart(chart)], timestamp=AT),
    ]


@pytest.mark.parametrize("number", range(6))
def test_no_bytes_are_in_a_payload_and_all_come_back(number):
    message = messages()[number]
    payload = dump(message)
    text = json.dumps(payload)
    assert all(each.base64 not in text for each in media_in(message))
    assert load(payload) == message
    assert load(json.loads(text)) == message
    assert parts_of(load(payload)) == parts_of(message)
    assert count_message(load(payload)) == count_message(message)
    assert dump(load(payload)) == payload


def media_in(message):
    return [PHOTO] if message.kind == "request" and "look" in plain_text(message) else []


def test_a_message_without_media_is_stored_as_pydantic_ai_writes_it():
    message = user_prompt("look", AT)
    (plain,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    assert json.dumps(dump(message)) == json.dumps(plain)
    assert not Media.objects.exists()


def test_storing_leaves_the_message_as_it_was():
    message = user_prompt("look", AT, attachments=[PHOTO])
    before = copy.deepcopy(message)
    dump(message)
    assert message == before
    assert message.parts[0].content[1] is PHOTO


def test_a_file_is_read_when_its_bytes_are_asked_for(monkeypatch):
    reads = []
    monkeypatch.setattr(media, "read", lambda digest: reads.append(digest) or PICTURE)
    message = load(dump(user_prompt("look", AT, attachments=[PHOTO])))
    parts_of(message)
    count_message(message)
    assert "photo.png" in repr(message)
    copied = copy.deepcopy(message)
    assert reads == []
    stored = copied.parts[0].content[1]
    assert isinstance(stored, StoredImage)
    assert stored.data == PICTURE
    assert len(reads) == 1


def test_pydantic_ai_takes_stored_content_for_its_own():
    message = load(dump(user_prompt("look", AT, attachments=[PHOTO, NOTES])))
    picture, notes = message.parts[0].content[1:]
    assert isinstance(notes, StoredContent)
    assert (picture.is_image, notes.is_image) == (True, False)
    assert picture.data_uri == PHOTO.data_uri
    written = ModelMessagesTypeAdapter.dump_json([message])
    (again,) = ModelMessagesTypeAdapter.validate_json(written)
    assert again.parts[0].content[1] == PHOTO


def test_a_payload_of_before_media_lay_outside_still_reads():
    message = user_prompt("look", AT, attachments=[PHOTO])
    (inline,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    assert load(inline) == message


def test_a_tool_cannot_lay_hold_of_a_file_by_writing_what_a_reference_looks_like():
    secret = media.keep(b"secret", media_type="text/plain")
    forged = {"kind": "binary", "data": "", "media_type": "text/plain", "hash": secret.hash}
    reference = [{"at": [0], "hash": secret.hash, "size": 6}]
    for content in (forged, [forged], {"media": reference}, {"media": reference, "parts": []}):
        message = ModelRequest(parts=[ToolReturnPart("t", content, "1", timestamp=AT)])
        assert "media" not in dump(message)
        shown = repr(load(dump(message)))
        assert "Stored" not in shown
        assert "b'secret'" not in shown


@pytest.mark.parametrize("number", range(6))
def test_a_file_that_is_gone_leaves_a_sentence_and_never_a_failure(number):
    message = messages()[number]
    payload = dump(message)
    for path in files():
        path.unlink()
    shown = load(payload)
    (written,) = ModelMessagesTypeAdapter.dump_python([shown], mode="json")
    assert "is no longer available" in json.dumps(written)
    count_message(shown)


@pytest.mark.parametrize("number", range(6))
def test_a_file_that_went_while_a_message_was_in_memory_leaves_a_sentence_too(number):
    message = load(dump(messages()[number]))
    assert present(message) is message
    for path in files():
        path.unlink()
    (written,) = ModelMessagesTypeAdapter.dump_python([present(message)], mode="json")
    assert "is no longer available" in json.dumps(written)


def test_what_was_never_stored_is_present():
    message = user_prompt("look", AT, attachments=[PHOTO])
    assert present(message) is message


def test_a_prompt_whose_file_is_gone_counts_and_reads_as_before():
    message = user_prompt("look", AT, attachments=[PHOTO])
    payload = dump(message)
    for path in files():
        path.unlink()
    shown = load(payload)
    assert parts_of(shown) == parts_of(message)
    assert plain_text(shown) == plain_text(message)
    assert count_message(shown) == count_message(message)
    assert dump(shown) == payload


def test_a_file_that_went_after_it_was_loaded_is_stored_again_when_it_is_sent_on():
    message = load(dump(user_prompt("look", AT, attachments=[PHOTO])))
    message.parts[0].content[1].data  # noqa: B018 - the bytes are in memory now
    Media.objects.all().delete()
    dump(message)
    assert Media.objects.count() == 1


def test_what_an_application_says_a_file_costs_counts_and_reaches_no_provider():
    told = {"token_estimate": 7, "detail": "low"}
    photo = BinaryImage(PICTURE, media_type="image/png", vendor_metadata=told)
    message = user_prompt("look", AT, attachments=[photo])
    stored = load(dump(message))
    assert stored.parts[0].content[1].vendor_metadata == {"detail": "low"}
    bare = count_message(user_prompt("look", AT))
    assert count_message(message) == count_message(stored) == bare + 7
    assert count_message(load(dump(stored)), "anthropic:claude-sonnet-4-6") == bare + 7


@pytest.mark.parametrize("estimate", [-1, 1.5, "7", True, None])
def test_an_estimate_that_is_no_number_of_tokens_is_ignored(estimate):
    told = {"token_estimate": estimate}
    photo = BinaryImage(PICTURE, media_type="image/png", vendor_metadata=told)
    plain = BinaryImage(PICTURE, media_type="image/png")
    costs = [count_message(user_prompt("look", AT, attachments=[each])) for each in (photo, plain)]
    assert costs[0] == costs[1]


def test_each_provider_is_asked_its_own_price_for_a_stored_picture():
    message = load(dump(user_prompt("", AT, attachments=[PHOTO])))
    bare = count_message(user_prompt("", AT))
    costs = {
        model: count_message(message, model) - bare
        for model in ("", "anthropic:claude-sonnet-4-6", "google:gemini-2.5-flash")
    }
    assert list(costs.values()) == [85, 2, 258]


def test_a_text_file_costs_what_its_text_costs():
    message = user_prompt("look", AT, attachments=[NOTES])
    assert count_message(message) == count_message(user_prompt("look", AT)) + count("Buy oak.")
    assert count_message(load(dump(message))) == count_message(message)


def test_a_document_costs_by_its_bytes():
    plan = BinaryContent(pdf(2) + bytes(4_000), media_type="application/pdf")
    message = user_prompt("", AT, attachments=[plan])
    assert count_message(message) > count_message(user_prompt("", AT)) + 1_000


def test_a_link_costs_what_describes_it_and_a_linked_picture_an_unknown_one():
    link = ImageUrl("https://example.org/a.png")
    bare = count_message(user_prompt("", AT))
    assert count_message(user_prompt("", AT, attachments=[link])) == bare + 85 + 4 * 170
    far = ModelRequest(parts=[UserPromptPart([_document("https://example.org/plan.pdf")])])
    assert 10 < count_message(far) - bare < 60


def _document(url):
    from pydantic_ai.messages import DocumentUrl

    return DocumentUrl(url)
