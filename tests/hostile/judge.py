"""Read a page as a browser does, and tell what of it no page of ours holds."""

import re
from html.parser import HTMLParser

FOREIGN = {"iframe", "object", "embed", "base", "marquee", "frame", "math", "animate", "applet"}
ADDRESSES = {"href", "src", "action", "formaction", "poster", "data", "xlink:href", "srcdoc"}
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.I)
HARMLESS = {"http", "https", "mailto"}
#: What a script in a page may be: data, or a file of ours.
DATA = {"application/json", "importmap", "speculationrules"}


class Page(HTMLParser):
    """Hold the text of a page and what is wrong with its elements."""

    def __init__(self, html, *, admin=False):
        super().__init__(convert_charrefs=True)
        self.admin = admin
        self.problems = []
        self.inside = []
        self.data = []
        self.feed(html)
        self.close()

    @property
    def text(self):
        return plain("".join(self.data))

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        if tag in FOREIGN:
            self.problems.append(f"<{tag}>")
        if tag == "script":
            self.script(told)
        if tag == "style" and not self.admin:
            self.problems.append("<style>")
        if tag == "meta" and told.get("http-equiv") == "refresh" and "noscript" not in self.inside:
            self.problems.append("<meta http-equiv=refresh>")
        for name, value in attributes:
            self.attribute(tag, name, value or "")
        if tag in {"script", "style", "noscript"}:
            self.inside.append(tag)

    def script(self, told):
        own = (told.get("src") or "").startswith("/static/")
        if not (own or told.get("type") in DATA or self.admin):
            self.problems.append(f"<script {told}>")

    def attribute(self, tag, name, value):
        if name.startswith("on") or name.startswith(("hx-on", "data-hx-")):
            self.problems.append(f"<{tag} {name}>")
        address = re.sub(r"[\x00-\x20]", "", value)
        if name not in ADDRESSES:
            return
        scheme = SCHEME.match(address)
        runs = scheme is not None and scheme[1].lower() not in HARMLESS
        # A link may lead anywhere; what is loaded, or sent to, may not.
        leaves = tag != "a" and (address.startswith("//") or "elsewhere.example" in address)
        if runs or leaves:
            self.problems.append(f"<{tag} {name}={value!r}>")

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if "script" in self.inside or "style" in self.inside:
            if "window.pwned" in data and self.inside[-1] == "script":
                self.problems.append("a script that runs what somebody said")
            return
        self.data.append(data)


def plain(text):
    """Return a text as it can be compared: without what pages and databases even out."""
    return " ".join(re.sub(r"[\x00-\x20\u2028\u2029\ufeff\ufffd\x7f-\x9f]+", " ", text).split())
