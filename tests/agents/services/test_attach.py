import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pydantic_ai.messages import BinaryContent

from agents.models import Turn
from agents.services import attach
from agents.services.attach import BadFile, clean_name, contents, redeem, take, token_of
from agents.services.send import BadPrompt, retry, send
from memory.media import keep, sweep
from memory.messages import dump, load, user_prompt
from memory.models import Media, Thread
from tests.memory.test_headers import gif, pdf, png

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path)


def given(name, data, declared="application/octet-stream"):
    return SimpleUploadedFile(name, data, content_type=declared)


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("photo.png", png(2, 2), "image/png"),
        ("photo.jpg", png(2, 2), "image/png"),
        ("photo", gif(2, 2), "image/gif"),
        ("plan.pdf", pdf(1), "application/pdf"),
        ("plan.txt", pdf(1), "application/pdf"),
        ("notes.md", b"# Kitchen", "text/markdown"),
        ("costs.csv", b"a,b\n1,2", "text/csv"),
        ("data.json", b'{"a": 1}', "application/json"),
        ("data.json", b"{broken", "text/plain"),
        ("main.py", b"print('hi')", "text/plain"),
        ("README", "Grüße".encode(), "text/plain"),
        ("drawing.svg", b"<svg onload='alert(1)'/>", "text/plain"),
        ("page.html", b"<script>alert(1)</script>", "text/plain"),
        ("large.gif", gif(7_000, 7_000), "image/gif"),
    ],
)
def test_a_file_is_what_its_content_shows(name, data, media_type):
    attached = take(given(name, data, "image/gif"))
    assert (attached["name"], attached["media_type"]) == (name, media_type)
    assert attached["size"] == len(data)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("empty.txt", b"", "empty.txt is empty. Attach a file with something in it."),
        ("setup.exe", b"MZ\x90\x00", "setup.exe is of a kind that cannot be attached. Attach a"),
        ("photo.png", b"<html>", "photo.png is not what its name says: its content is text."),
        ("plan.pdf", b"hello", "plan.pdf is not what its name says"),
        ("photo.png", png(2, 2)[:12], "photo.png is a damaged picture. Save it anew"),
        (
            "bomb.gif",
            gif(60_000, 60_000),
            "bomb.gif has 60,000 × 60,000 pixels, more than 50 million",
        ),
    ],
)
def test_a_file_that_cannot_be_taken_says_what_to_do(name, data, told):
    with pytest.raises(BadFile, match=told.replace(".", r"\.")):
        take(given(name, data))
    assert not Media.objects.exists()


def test_a_file_may_have_so_many_bytes(settings):
    settings.ATTACHMENT_BYTES = 1024 * 1024
    take(given("a.txt", b"x" * 1024 * 1024))
    with pytest.raises(BadFile, match=r"a.txt is larger than 1 MB. Attach a smaller one."):
        take(given("a.txt", b"x" * (1024 * 1024 + 1)))


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("photo.png", "photo.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\plan.pdf", "plan.pdf"),
        ('a"><script>.md', "a script .md"),
        ("two\nlines\x00.txt", "two lines .txt"),
        ("\u202egnp.exe", "gnp.exe"),
        ("", "file"),
        ("...", "file"),
        ("x" * 200 + ".markdown", "x" * 91 + ".markdown"),
    ],
)
def test_a_name_is_one_plain_line(name, clean):
    assert clean_name(name) == clean


def test_a_token_gives_back_what_was_taken(thread):
    attached = take(given("photo.png", png(2, 2)))
    token = token_of(thread.pk, attached)
    assert redeem(thread.pk, [token]) == [attached]
    assert not set(token) & set(' \t\n"')


def test_a_token_is_good_for_its_conversation_only(thread, resource):
    other = Thread.objects.create(resource=resource, agent="tester")
    token = token_of(other.pk, take(given("photo.png", png(2, 2))))
    with pytest.raises(BadFile, match="another conversation"):
        redeem(thread.pk, [token])


@pytest.mark.parametrize("token", ["", "nonsense", "a:b:c"])
def test_a_token_that_was_made_up_is_refused(thread, token):
    with pytest.raises(BadFile, match="not known here"):
        redeem(thread.pk, [token])


def test_a_token_lasts_a_day(thread, monkeypatch):
    token = token_of(thread.pk, take(given("photo.png", png(2, 2))))
    monkeypatch.setattr("django.core.signing.time.time", lambda: 10**11)
    with pytest.raises(BadFile, match="too long ago"):
        redeem(thread.pk, [token])


def test_a_file_that_is_gone_cannot_be_sent(thread):
    kept = keep(b"hello", media_type="text/plain")
    token = token_of(thread.pk, {"name": "a.txt", "media_type": "text/plain", **kept.as_json()})
    Media.objects.all().delete()
    for path in attach.media.default_storage.listdir(kept.hash[:2])[1]:
        attach.media.default_storage.delete(f"{kept.hash[:2]}/{path}")
    with pytest.raises(BadFile, match="is no longer here"):
        redeem(thread.pk, [token])


def test_a_message_takes_so_many_files(thread, settings):
    settings.ATTACHMENTS_PER_MESSAGE = 2
    token = token_of(thread.pk, take(given("a.txt", b"hello")))
    with pytest.raises(BadFile, match=r"at most 2 files\. Remove 1"):
        redeem(thread.pk, [token] * 3)


def test_files_of_one_message_have_names_of_their_own(thread):
    tokens = [token_of(thread.pk, take(given("a.txt", text))) for text in (b"1", b"2", b"3")]
    named = [file["name"] for file in redeem(thread.pk, tokens)]
    assert named == ["a.txt", "a (2).txt", "a (3).txt"]


def test_a_prompt_may_consist_of_files_alone(thread):
    attached = take(given("photo.png", png(2, 2)))
    turn = send(thread.pk, "", attachments=[attached])
    turn.refresh_from_db()
    assert (turn.prompt, turn.attachments) == ("", [attached])
    with pytest.raises(BadPrompt):
        send(thread.pk, "")


def test_a_prompt_sent_again_has_its_files(thread):
    attached = take(given("photo.png", png(2, 2)))
    turn = send(thread.pk, "look", attachments=[attached])
    Turn.objects.update(status=Turn.Status.FAILED)
    assert retry(thread.pk, turn.number).attachments == [attached]


def test_the_message_of_a_turn_holds_its_files_in_order(thread):
    files = [take(given("photo.png", png(2, 2))), take(given("notes.md", b"Buy oak."))]
    turn = send(thread.pk, "look", attachments=files)
    message = user_prompt(turn.prompt, turn.created_at, attachments=contents(turn.attachments))
    text, photo, notes = load(dump(message)).parts[0].content
    assert text == "look"
    assert photo == BinaryContent(png(2, 2), media_type="image/png")
    # Every provider takes plain text; not every one takes Markdown.
    assert notes == BinaryContent(b"Buy oak.", media_type="text/plain")
    assert (photo.identifier, notes.identifier) == ("photo.png", "notes.md")


def test_a_file_that_went_while_its_prompt_waited_fails_no_turn(thread):
    kept = {"name": "a.txt", "media_type": "text/plain", "hash": "0" * 64, "size": 5}
    message = user_prompt("look", thread.created_at, attachments=contents([kept]))
    assert "a.txt is no longer available" in load(dump(message)).parts[0].content[1].content


def test_files_that_wait_are_not_swept(thread, django_capture_on_commit_callbacks):
    sent = take(given("a.txt", b"waits"))
    take(given("b.txt", b"never sent"))
    send(thread.pk, "look", attachments=[sent])
    Media.objects.update(used_at="2020-01-01T00:00:00Z")
    assert attach.waiting() == {sent["hash"]}
    with django_capture_on_commit_callbacks(execute=True):
        sweep(keep=attach.waiting())
    assert list(Media.objects.values_list("hash", flat=True)) == [sent["hash"]]
