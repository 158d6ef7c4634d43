"""Tell pages what changed of a long region, piece by piece.

A log of sixty messages is a hundred kilobytes, and what a step adds to it two. Whoever has the
version before is told what left, what changed and what came, and where; whoever has another one
is sent the region whole, as is whoever says what it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from agents.live import Patch, Rendered

#: Of the whole region: from here on the whole is sent, which every page can take.
WORTH = 0.5

# Values of attributes are escaped, so that the first ">" ends a tag.
_ATTRIBUTE = re.compile(rb'\b(data-[a-z-]+)="([^"]*)"')


def since(old: Rendered | None, new: Rendered) -> Rendered:
    """Return the newer version of a region with what makes it of the older one."""
    return replace(new, patch=_between(old, new))


def _between(old: Rendered | None, new: Rendered) -> Patch | None:
    if old is None or not old.keys or not new.keys or old.parts[-1] != new.parts[-1]:
        return None
    before, after = _pieces(old), _pieces(new)
    stay = [key for key in new.keys if key in before]
    if not stay or stay != [key for key in old.keys if key in after]:
        return None
    tag, top = _head(new)
    parts = [*_top(new.name, _head(old)[1], top), *_moves(new.name, before, after)]
    html = b"".join(parts)
    if len(html) > WORTH * sum(map(len, new.parts)):
        return None
    attributes = {name.decode(): value.decode() for name, value in _ATTRIBUTE.findall(tag)}
    return Patch(old.etag, html.decode(), attributes)


def _pieces(region: Rendered) -> dict[str, bytes]:
    return dict(zip(region.keys, region.parts[1:-1], strict=True))


def _head(region: Rendered) -> tuple[bytes, bytes]:
    """Return the tag that opens a region, and what stands in it before its pieces."""
    tag, _, top = region.parts[0].partition(b">")
    return tag, top


def _top(name: str, old: bytes, new: bytes) -> Iterator[bytes]:
    """Yield what makes the one element above the pieces another, or brings or takes it."""
    if old == new:
        return
    if old:
        yield _partial(f"#{name} > :first-child", "delete")
    if new:
        yield _partial(f"#{name}", "afterbegin", new)


def _moves(name: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[bytes]:
    for key in before.keys() - after.keys():
        yield _partial(f"#{name} > #{key}", "delete")
    first, last = next(key for key in after if key in before), ""
    for is_new, keys in groupby(after, key=lambda key: key not in before):
        run = list(keys)
        if is_new:
            html = b"".join(after[key] for key in run)
            where = (last, "afterend") if last else (first, "beforebegin")
            yield _partial(f"#{name} > #{where[0]}", where[1], html)
            continue
        for key in run:
            if before[key] != after[key]:
                yield _partial(f"#{name} > #{key}", "outerMorph", after[key])
        last = run[-1]


def _partial(target: str, swap: str, html: bytes = b"") -> bytes:
    opening = f'<hx-partial hx-target="{target}" hx-swap="{swap}">'
    return b"".join((opening.encode(), html, b"</hx-partial>"))
