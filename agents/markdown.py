"""Turn what people and models write into HTML that is safe to show."""

from __future__ import annotations

from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

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
        return mark_safe(f"<pre>{nh3.clean_text(text)}</pre>")
    tokens = _parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The page has its own first and second level.
            token.tag = f"h{min(5, int(token.tag[1]) + 2)}"
    html = _parser.renderer.render(tokens, _parser.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)
