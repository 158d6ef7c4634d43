from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from pydantic_ai.messages import BinaryContent

from memory import media
from memory.media import audit, content_of, destroy, keep, passes, read, reads, sweep
from memory.messages import user_prompt
from memory.models import Media, Message
from memory.services.append import append
from memory.stored import MediaMissing

from .test_headers import png

pytestmark = pytest.mark.django_db

AT = datetime(2024, 5, 8, 13, 56, tzinfo=UTC)
LONG_AGO = timedelta(days=30)


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path)
    media._CACHE = media._Cache(media.CACHE_BYTES)
    return tmp_path


@pytest.fixture
def committed(django_capture_on_commit_callbacks):
    """Return what makes the block's changes as good as committed."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def file_of(reference):
    return Path(settings.MEDIA_ROOT) / reference.hash[:2] / reference.hash


def grow_old(*references):
    hashes = [reference.hash for reference in references]
    Media.objects.filter(hash__in=hashes).update(used_at=timezone.now() - LONG_AGO)


def say(thread, *contents):
    append(thread.pk, [user_prompt("look", AT, attachments=contents)], at=AT)
    return Message.objects.order_by("position").last()


def test_bytes_are_kept_once_with_what_their_header_says():
    first = keep(png(3, 2), media_type="image/png", name="a.png")
    assert keep(png(3, 2), media_type="image/png", name="b.png") == first
    (row,) = Media.objects.all()
    assert (row.hash, row.name, row.size) == (first.hash, "a.png", len(png(3, 2)))
    assert (row.width, row.height, row.pages) == (3, 2, None)
    assert first.hash == sha256(png(3, 2)).hexdigest()
    assert read(first.hash) == file_of(first).read_bytes() == png(3, 2)
    assert audit().is_sound


def test_a_file_cut_short_by_a_crash_is_written_anew():
    kept = keep(b"hello", media_type="text/plain")
    file_of(kept).write_bytes(b"he")
    assert audit().rows_without_file == (kept.hash,)
    keep(b"hello", media_type="text/plain")
    assert file_of(kept).read_bytes() == b"hello"
    assert audit().is_sound


def test_bytes_that_are_gone_are_told_by_name(folder):
    with pytest.raises(MediaMissing, match="not in the media folder"):
        read("0" * 64)


def test_bytes_read_often_are_held_up_to_a_size(monkeypatch):
    monkeypatch.setattr(media, "_CACHE", media._Cache(10))
    small, large = keep(b"1234", media_type="x/y"), keep(b"123456789", media_type="x/y")
    assert read(small.hash) is read(small.hash)
    read(large.hash)
    file_of(small).unlink()
    with pytest.raises(MediaMissing):
        read(small.hash)
    assert read(large.hash) == b"123456789"


def test_what_is_kept_can_be_shown_to_an_observer_by_its_key():
    kept = keep(png(3, 2), media_type="image/png", name="a.png")
    content = content_of(kept.hash)
    assert content == BinaryContent(png(3, 2), media_type="image/png")
    assert content.is_image
    assert content.identifier == "a.png"
    file_of(kept).unlink()
    assert content_of(kept.hash) is None
    assert content_of("0" * 64) is None


def test_every_kind_of_text_is_shown_as_plain_text():
    kept = keep(b"# Oak", media_type="text/markdown", name="notes.md")
    content = content_of(kept.hash)
    assert content == BinaryContent(b"# Oak", media_type="text/plain")
    assert content.identifier == "notes.md"


def test_an_audit_finds_rows_without_files_and_files_without_rows(folder):
    lost = keep(b"lost", media_type="text/plain")
    keep(b"there", media_type="text/plain")
    file_of(lost).unlink()
    (folder / "ab").mkdir(exist_ok=True)
    (folder / "ab" / "stray").write_bytes(b"?")
    found = audit()
    assert found.rows_without_file == (lost.hash,)
    assert found.files_without_row == ("ab/stray",)
    assert not found.is_sound


def test_a_folder_that_was_never_made_has_no_files(settings):
    settings.MEDIA_ROOT += "/none"
    assert audit().is_sound


def test_a_sweep_never_takes_what_a_message_references(thread, committed):
    message = say(thread, BinaryContent(png(1, 1), media_type="image/png"))
    sent = Media.objects.get()
    unsent = keep(b"never sent", media_type="text/plain")
    waiting = keep(b"waits", media_type="text/plain")
    fresh = keep(b"fresh", media_type="text/plain")
    grow_old(sent, unsent, waiting)
    with committed():
        assert sweep(keep=[waiting.hash]).media == 1
    left = set(Media.objects.values_list("hash", flat=True))
    assert left == {sent.hash, waiting.hash, fresh.hash}
    assert not file_of(unsent).exists()
    assert file_of(sent).exists()
    assert media.references(message.payload)[0].hash == sent.hash
    assert audit().is_sound


def test_a_sweep_takes_old_files_without_a_row(folder):
    import os

    (folder / "ab").mkdir()
    for name, age in (("old", 30), ("new", 0)):
        path = folder / "ab" / name
        path.write_bytes(b"?")
        past = (timezone.now() - timedelta(days=age)).timestamp()
        os.utime(path, (past, past))
    assert sweep().files == 1
    assert [path.name for path in (folder / "ab").iterdir()] == ["new"]


def test_what_was_stored_again_meanwhile_is_not_swept(monkeypatch, committed):
    kept = keep(b"again", media_type="text/plain")
    grow_old(kept)
    slow = media.referenced

    def referenced(*args):
        keep(b"again", media_type="text/plain")
        return slow(*args)

    monkeypatch.setattr(media, "referenced", referenced)
    with committed():
        assert sweep().media == 0
    assert file_of(kept).exists()


def test_what_was_stored_again_before_its_file_went_keeps_it(committed):
    kept = keep(b"again", media_type="text/plain")
    grow_old(kept)
    with committed():
        assert sweep().media == 1
        keep(b"again", media_type="text/plain")
    assert file_of(kept).exists()
    assert audit().is_sound


def test_erasing_takes_media_at_once_unless_another_message_has_them(thread, committed):
    shared = BinaryContent(b"shared", media_type="text/plain")
    alone = BinaryContent(b"alone", media_type="text/plain")
    erased = say(thread, shared, alone)
    say(thread, shared)
    gone = [reference.hash for reference in media.references(erased.payload)]
    erased.delete()
    with committed():
        assert destroy(gone) == [sha256(b"alone").hexdigest()]
    assert not (Path(settings.MEDIA_ROOT) / gone[1][:2] / gone[1]).exists()
    assert read(gone[0]) == b"shared"
    with pytest.raises(MediaMissing):
        read(gone[1])


def test_media_are_destroyed_however_many_there_are(thread, committed):
    kept_by_a_message = say(thread, BinaryContent(b"shown", media_type="text/plain"))
    (shown,) = media.references(kept_by_a_message.payload)
    gone = keep(b"gone", media_type="text/plain")
    strange = [sha256(str(number).encode()).hexdigest() for number in range(1200)]
    with committed():
        assert destroy([*strange, shown.hash, gone.hash]) == [gone.hash]
    assert read(shown.hash) == b"shown"


def test_a_hash_in_a_text_is_no_reference(thread, committed):
    kept = keep(b"secret", media_type="text/plain")
    append(thread.pk, [user_prompt(f'"media": [{{"hash": "{kept.hash}"}}]', AT)], at=AT)
    grow_old(kept)
    with committed():
        assert sweep().media == 1


@pytest.mark.parametrize(
    ("allowed", "media_type", "shown"),
    [
        (True, "image/png", True),
        (False, "image/png", False),
        ([], "image/png", False),
        (["image/png"], "image/png", True),
        (["image/png"], "image/jpeg", False),
        (["IMAGE/*"], "image/jpeg", True),
        (["image/*"], "Image/JPEG", True),
        (["image/*"], "application/pdf", False),
        (["image/*", "application/pdf"], "application/pdf", True),
        (["*"], "audio/wav", True),
        ("auto", "image/png", True),
    ],
)
def test_media_pass_by_type_by_pattern_or_all(allowed, media_type, shown):
    assert passes(media_type, allowed) is shown


@pytest.mark.parametrize(
    ("model", "media_type", "can"),
    [
        ("openai:gpt-5-mini", "image/png", True),
        ("openai:gpt-3.5-turbo", "image/png", False),
        ("openai:gpt-3.5-turbo", "text/plain", True),
        ("openai:o3", "image/png", True),
        ("openai:o3-mini", "image/png", False),
        ("deepseek:deepseek-chat", "image/png", False),
        ("offline", "image/png", False),
        ("offline", "text/plain", False),
        ("acme:unheard-of", "image/png", True),
        ("", "image/png", True),
    ],
)
def test_what_a_model_reads_is_known_or_hoped(model, media_type, can):
    assert reads(model, media_type) is can
    assert passes(media_type, "auto", model=model) is can
