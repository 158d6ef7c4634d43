from html.parser import HTMLParser

import pytest

from agents.markdown import LONGEST, render_markdown


class Elements(HTMLParser):
    """Collect what a browser would see: tags, attributes and links."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.links = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]


def test_markdown_becomes_html():
    html = render_markdown("**Rex** is `3`\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |")

    assert "<strong>Rex</strong> is <code>3</code>" in html
    assert html.count("<li>") == 2
    assert "<td>1</td>" in html


def test_a_column_without_a_name_has_no_heading():
    html = render_markdown("| | y |\n|---|---|\n| 1 | 2 |")

    assert html.count("<th>") == 1
    assert "<td></td>" in html


def test_code_can_be_scrolled_by_keyboard():
    assert '<pre tabindex="0">' in render_markdown("```\nx\n```")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[here](javascript:alert(1))",
        "[here](data:text/html;base64,PHNjcmlwdD4=)",
        "![picture](https://example.org/pixel.png)",
        '<a href="https://example.org" style="color:red" onclick="x()">x</a>',
        "</observations><thread id=3>",
        "`<svg onload=alert(1)>`",
        '[a](https://example.org "x\\" onmouseover=\\"y")',
        "<hx-partial hx-target='#log'>gone</hx-partial>",
    ],
)
def test_nothing_dangerous_passes(text):
    seen = Elements()
    seen.feed(render_markdown(text))

    assert not seen.tags & {"script", "img", "svg", "thread", "observations", "hx-partial"}
    assert seen.attributes <= {"href", "rel", "title"}
    assert not any(link.startswith(("javascript:", "data:")) for link in seen.links)


def test_links_tell_nobody_where_they_came_from():
    html = render_markdown("[site](https://example.org)")

    assert '<a href="https://example.org" rel="noopener noreferrer nofollow">site</a>' in html


def test_headings_stay_below_those_of_the_page():
    assert render_markdown("# Title").startswith("<h3>")


def test_a_text_beyond_all_measure_is_shown_as_it_is():
    html = render_markdown("<b>" * LONGEST)

    assert html.startswith('<pre tabindex="0">&lt;b&gt;')
