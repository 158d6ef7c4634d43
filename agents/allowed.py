"""Take controls out of rendered regions that their reader has no right to.

Regions are rendered once for all who look at a thread. A control names the right it takes in
``data-needs``; whoever lacks it is sent the same region, with the same etag, without it.
"""

from __future__ import annotations

import re
from typing import Any

from agents.access import Right, may
from memory.models import Resource

#: The rights that controls of the chat page name, as they name them.
NAMED = {"chat": Right.CHAT, "edit": Right.EDIT, "operate": Right.OPERATE}

# Values of attributes are escaped, so that the first ">" ends a tag; no control holds another.
_CONTROL = re.compile(
    r"<(?P<tag>a|button)\s[^>]*?\bdata-needs=\"(?P<right>\w+)\"[^>]*>.*?</(?P=tag)>", re.DOTALL
)


def rights_of(user: Any, resource: Resource | int) -> frozenset[str]:
    """Return the names of the rights a person has in a resource."""
    return frozenset(name for name, right in NAMED.items() if may(user, right, resource))


def allowed(html: str, rights: frozenset[str]) -> str:
    """Return HTML without the controls that take a right which is not among these."""
    if rights >= NAMED.keys():
        return html
    return _CONTROL.sub(lambda found: found[0] if found["right"] in rights else "", html)
