"""Turn what people and models write into HTML that is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "a"),
    *("ul", "ol", "li", "h3", "h4", "h5"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
# Beyond this a text is shown as it is: parsing would hold up everybody's page.
LONGEST = 200_000

_parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
_parser.enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=2048)
def render_markdown(text: str) -> SafeString:
    """Return sanitised HTML for Markdown; raw HTML in it is shown as text, images as links."""
    if len(text) > LONGEST:
        return mark_safe(f'<pre tabindex="0">{nh3.clean_text(text)}</pre>')
    tokens = _parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The page has its own first and second level.
            token.tag = f"h{min(5, int(token.tag[1]) + 2)}"
    _name_cells(tokens)
    html = _parser.renderer.render(tokens, _parser.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        # What scrolls must be reachable by keyboard.
        set_tag_attribute_values={"pre": {"tabindex": "0"}},
    )
    return mark_safe(clean)


def _name_cells(tokens: Sequence[Token]) -> None:
    """Make an empty heading of a column a plain cell: it names nothing."""
    for opening, inside, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inside.content.strip():
            opening.tag = closing.tag = "td"
