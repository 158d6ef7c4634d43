"""Nothing of a memory is lost on its way to the page."""

from html.parser import HTMLParser

from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.studio.memory.asked import Asked
from agents.studio.memory.reading import Reading
from memory.models import Line, Observation
from memory.services.written import text_of

PARTS = [*"ab*- \t(:)12<>/&'\"🔴✅\n\r\u2028\u202e", "    ", "Date: ", "</memory>", "-> ", "</li>"]
ODD = st.lists(st.sampled_from(PARTS), min_size=1, max_size=16).map("".join).filter(str.strip)
LINES = st.lists(st.tuples(ODD, st.sampled_from(Line.Kind.values), st.booleans()), max_size=6)


class Page(HTMLParser):
    """Read what a page shows: the texts of headers and of lines, in order."""

    def __init__(self, html):
        super().__init__()
        self.headers, self.words, self.ids, self._into = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "data-header" in found:
            self._into = self.headers
        elif found.get("class") == "words":
            self._into = self.words
        elif "data-row" in found:
            self.ids.append(found["id"])
        if self._into is not None and ("data-header" in found or found.get("class") == "words"):
            self._into.append("")

    def handle_endtag(self, tag):
        self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1] += data


def remember(world, lines):
    """Show lines, and take away what was written before."""
    number = world.revise("observe")
    row = Observation.objects.create(record=world.record, kind="note", since=number, place=number)
    now = timezone.now()
    for at, (text, kind, dated) in enumerate(lines):
        Line.objects.create(
            observation=row,
            ordinal=at,
            kind=kind,
            text=text,
            tokens=1,
            said_at=now if dated else None,
            since=number,
        )


def page_of(client, world, query):
    html = client.get(f"/memory/{world.thread.pk}/{query}").content.decode()
    return Page(html)


def pieces(world, **asked):
    return Reading(world.thread, Asked(**asked), timezone.now()).pieces


FEW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FEW
@given(LINES)
def test_rows_and_headers_are_the_lines_of_the_raw_text(here, world, lines):
    remember(world, lines)

    raw = text_of(pieces(world, seen="agent"))
    page = page_of(here, world, "?seen=agent")

    told = [text for words in (page.headers, page.words) for text in words]
    assert sorted("\n".join(told).split("\n")) == sorted(raw.split("\n"))
    assert raw.split("\n") == [
        line for piece in pieces(world, seen="agent") for line in piece.text.split("\n")
    ]


@FEW
@given(LINES)
def test_a_row_says_what_is_stored_to_the_letter(here, world, lines):
    remember(world, lines)

    page = page_of(here, world, "")

    stored = Reading(world.thread, Asked(), timezone.now()).lines
    # A browser reads every line end as one, as the parser of its page does.
    assert page.words == [line.text.removeprefix("-> ") for line in stored]
    assert page.ids == [f"line-{line.pk}" for line in stored]
    headers = [piece.text for piece in pieces(world) if piece.line is None]
    assert page.headers == headers


def test_the_file_to_download_is_the_raw_text(here, condensed):
    base = f"/memory/{condensed.thread.pk}/raw"

    stored, seen = here.get(base), here.get(f"{base}?rev=1&seen=agent")

    assert stored.content.decode() == text_of(pieces(condensed)) + "\n"
    assert "attachment" in stored["Content-Disposition"]
    assert "revision-1-agent.txt" in seen["Content-Disposition"]
    assert seen.content.decode().startswith("<memory>\n")
    assert "Ada keeps bees for honey" not in seen.content.decode()
