import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.headers import Extent, measure, sniff


def png(width, height):
    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = zlib.compress(b"".join(b"\x00" + b"\x30\x60\x90" * width for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def jpeg(width, height, marker=0xC0):
    extra = b"\xff\xe1" + struct.pack(">H", 10) + b"Exif\x00\x00\xff\xc0"
    frame = bytes([0xFF, marker]) + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + extra + b"\xff" + frame + b"\xff\xda\x00\x02"


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp(kind, body):
    return b"RIFF" + struct.pack("<I", 22 + len(body)) + b"WEBP" + kind + bytes(4) + body


def webp_lossy(width, height):
    return webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height))


def webp_lossless(width, height):
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_extended(width, height):
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", bytes(4) + sizes)


def pdf(pages):
    kids = b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(pages))
    return b"%PDF-1.7\n<< /Type /Pages /Count 2 >>\n" + kids + b"%%EOF"


PICTURES = [
    (png, "image/png"),
    (jpeg, "image/jpeg"),
    (gif, "image/gif"),
    (webp_lossy, "image/webp"),
    (webp_lossless, "image/webp"),
    (webp_extended, "image/webp"),
]


@pytest.mark.parametrize(("make", "media_type"), PICTURES)
def test_a_picture_is_known_and_measured_by_its_header(make, media_type):
    data = make(37, 11)
    assert sniff(data) == media_type
    assert measure(data) == Extent(width=37, height=11)


@pytest.mark.parametrize("marker", [0xC1, 0xC2, 0xCF])
def test_a_progressive_jpeg_is_measured_too(marker):
    assert measure(jpeg(4000, 3000, marker)) == Extent(width=4000, height=3000)


@pytest.mark.parametrize(("make", "media_type"), PICTURES)
def test_a_picture_cut_short_is_of_unknown_size(make, media_type):
    assert measure(make(37, 11)[:9]) == Extent()


def test_a_picture_without_extent_is_of_unknown_size():
    assert measure(gif(0, 10)) == Extent()


def test_the_pages_of_a_document_are_counted_where_they_can_be_seen():
    assert sniff(pdf(3)) == "application/pdf"
    assert measure(pdf(3)) == Extent(pages=3)
    assert measure(b"%PDF-1.7\nstream") == Extent()


def test_a_document_may_begin_after_some_rubbish():
    assert sniff(b"\r\n\r\n" + pdf(1)) == "application/pdf"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("Grüße\n".encode(), "text/plain"),
        (b"a,b\n1,2\n", "text/plain"),
        (b'{"a": [1]}', "application/json"),
        (b"\xef\xbb\xbf[1]", "text/plain"),
        (b"{not json", "text/plain"),
        (b"", "text/plain"),
        (b"\xff\xfe\x00", ""),
        (b"PK\x03\x04\x00", ""),
        (b"text\x00text", ""),
    ],
)
def test_text_is_what_can_be_read_as_text(data, media_type):
    assert sniff(data) == media_type


@given(st.binary(max_size=80))
def test_no_bytes_are_too_strange(data):
    for start in (
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"GIF89a",
        b"RIFF1234WEBPVP8 ",
        b"%PDF-",
    ):
        extent = measure(start + data)
        assert extent.width is None or extent.width > 0
        sniff(start + data)
