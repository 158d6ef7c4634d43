import pytest

from memory.mastra.jsonb import loads


@pytest.mark.parametrize(
    ("blob", "value"),
    [
        (b"\x00", None),
        (b"\x01", True),
        (b"\x02", False),
        (b"\x13" + b"7", 7),
        (b"\x35" + b"1.5", 1.5),
        (b"\x57" + b"hello", "hello"),
        (b"\x48" + b"a\\nb", "a\nb"),
        (b"\xc7\x03" + b"abc", "abc"),
        (b"\x4b\x131\x132", [1, 2]),
        (b"\x3c\x17a\x01", {"a": True}),
    ],
)
def test_a_value_is_read(blob, value):
    assert loads(blob) == value


@pytest.mark.parametrize("blob", [b"", b"\x57abc", b"\x00\x00", b"\x0f", b"\xf7\x00", b"\x1b\xff"])
def test_what_is_none_is_refused(blob):
    with pytest.raises(ValueError, match="binary JSON"):
        loads(blob)
