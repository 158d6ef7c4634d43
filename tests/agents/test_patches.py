import re

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.live import Rendered
from agents.patches import since

PARTIAL = re.compile(
    r'<hx-partial hx-target="#log(?: > (.+?))?" hx-swap="(\w+)">(.*?)</hx-partial>'
)
ELEMENT = re.compile(r'<p id="(\w+)">.*?</p>')


def region(version, pieces, top=""):
    """Return a region of pieces: a letter and a number that tells its versions apart."""
    tag = f'<div id="log" data-etag="{version}" data-last="{len(pieces)}">'
    parts = [f'<p id="{key}">{str(told) * 400}</p>'.encode() for key, told in pieces.items()]
    return Rendered("log", version, ((tag + top).encode(), *parts, b"</div>"), tuple(pieces))


def elements(html):
    return [(found[1], found[0]) for found in ELEMENT.finditer(html)]


def patched(old, patch):
    """Return the elements of a region once a page has taken a patch in."""
    found = elements(old.html)
    for target, swap, html in PARTIAL.findall(patch.html):
        keys = [key for key, _ in found]
        at = keys.index(target[1:]) if target.startswith("#") else 0
        match swap:
            case "delete":
                del found[at]
            case "outerMorph":
                found[at] = (found[at][0], html)
            case "afterend":
                found[at + 1 : at + 1] = elements(html)
            case "beforebegin":
                found[at:at] = elements(html)
            case "afterbegin":
                found[:0] = elements(html)
    return found


LOG = st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(1, 3), max_size=12)
TOP = st.sampled_from(["", '<p id="more">Earlier</p>', '<p id="more">Much earlier</p>'])


@given(LOG, LOG, TOP, TOP)
@settings(max_examples=500)
def test_whoever_takes_a_patch_shows_what_the_whole_shows(before, after, old_top, new_top):
    old, new = region("1", before, old_top), region("2", after, new_top)

    patch = since(old, new).patch

    if patch is not None:
        assert patched(old, patch) == elements(new.html)
        assert (patch.base, patch.attributes) == (
            "1", {"data-etag": "2", "data-last": str(len(after))}
        )  # fmt: skip


def test_a_log_that_goes_on_is_told_its_end_alone():
    before = dict.fromkeys("abcdefgh", 1)
    after = {**dict.fromkeys("bcdefg", 1), "h": 2, "i": 1}

    patch = since(region("1", before), region("2", after)).patch

    assert [swap for _, swap, _ in PARTIAL.findall(patch.html)] == [
        "delete", "outerMorph", "afterend"
    ]  # fmt: skip
    assert len(patch.html) < len(region("2", after).html) / 3


def test_a_window_that_moves_on_is_told_both_its_ends():
    before = {"gap1": 1, **dict.fromkeys("abcdefgh", 1)}
    after = {"gap3": 1, **dict.fromkeys("cdefghij", 1)}
    old, new = (
        region(str(version), pieces, f'<p id="more">Before {version}</p>')
        for version, pieces in enumerate((before, after))
    )

    patch = since(old, new).patch

    assert patched(old, patch) == elements(new.html)
    assert [swap for _, swap, _ in PARTIAL.findall(patch.html)].count("outerMorph") == 0


def test_what_is_another_log_altogether_is_sent_whole():
    log = region("1", {"a": 1, "b": 1})

    assert since(None, log).patch is None
    assert since(log, region("2", {"c": 1, "d": 1})).patch is None
    assert since(log, region("2", {"b": 1, "a": 1})).patch is None
    assert since(log, region("2", {"a": 2, "b": 2})).patch is None
    assert since(Rendered("title", "1", (b"<h1>", b"</h1>")), log).patch is None
