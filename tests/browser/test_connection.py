"""The page says how it is connected, how old it is, and can be held still."""

import re

import pytest

from .axe import violations
from .conftest import live
from .shots import SHOTS, shot
from .test_chat import SLOW, begin, quiet, say


def chip(page, state):
    page.wait_for_selector(f"#connection[data-state={state}]", timeout=SLOW)
    return page.inner_text("#connection")


def counted(page):
    """Wait until the page says that something waits."""
    page.locator("#connection", has_text=re.compile(r"[1-9]\d* waiting")).wait_for(timeout=SLOW)


def test_a_page_held_still_counts_what_waits_and_shows_it_when_it_goes_on(site, visit):
    page = visit(site)
    begin(page)
    other = page.context.new_page()
    other.goto(page.url)
    live(other)
    page.locator("#log").press(".")
    chip(page, "paused")
    assert page.is_visible("#as-of")
    say(other, "Oak or laminate?")
    quiet(other, 1)
    page.wait_for_function(
        "/[1-9]\\d* waiting/.test(document.querySelector('#connection').innerText)"
    )
    assert page.locator("#entries [data-by]").count() == 0
    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector("#entries [data-by=assistant]", timeout=SLOW)
    assert chip(page, "live") == "Live"
    assert not page.is_visible("#as-of")


def test_who_writes_on_a_page_held_still_sees_the_answer(site, visit):
    page = visit(site)
    begin(page)
    page.locator("#log").press(".")
    chip(page, "paused")
    say(page, "Oak or laminate?")
    quiet(page, 1)
    chip(page, "live")


def test_other_pages_are_held_still_too(site, visit):
    page = visit(site)
    begin(page)
    home = page.context.new_page()
    home.goto(site.url)
    live(home)
    home.locator("body").press(".")
    chip(home, "paused")
    before = home.inner_text("#recent")
    say(page, "Oak or laminate?")
    quiet(page, 1)
    home.wait_for_function(
        "/[1-9]\\d* waiting/.test(document.querySelector('#connection').innerText)"
    )
    assert home.inner_text("#recent") == before
    home.locator("body").press(".")
    chip(home, "live")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_without_its_socket_says_its_age_and_is_connected_when_asked(site, visit, scheme):
    page = visit(site, scheme=scheme)
    begin(page)
    closed = []

    def broken(ws):
        if len(closed) < 1:
            closed.append(ws)
            ws.close(code=1000)  # The browser is not told to try again.
        else:
            ws.connect_to_server()

    page.route_web_socket(re.compile("/ws/chat/"), broken)
    page.reload()
    chip(page, "polling")
    assert re.match(r"as of \d\d:\d\d:\d\d", page.inner_text("#as-of"))
    page.click("#connection")
    said = page.inner_text("#link-facts")
    assert "State: Polling every 10 s" in said
    assert "Updates heard: 0" in said
    SHOTS.mkdir(exist_ok=True)
    shot(page, f"connection-{scheme}")
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    shot(page, f"connection-360-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#link").get_by_role("button", name="Retry now").click()
    page.wait_for_selector("#connection[data-state=live]", state="attached", timeout=SLOW)
    page.locator("#link").get_by_role("button", name="Close").click()
    shot(page, f"connection-back-360-{scheme}")
    say(page, "Are you there?")
    quiet(page, 1)


#: Refuses every socket, as a server that is away does, until the page says otherwise.
AWAY = """
const Real = WebSocket;
window.away = true;
window.WebSocket = Object.assign(function (url) {
  if (!window.away) return new Real(url);
  const socket = Object.assign(new EventTarget(), { readyState: 3, close() {}, send() {} });
  setTimeout(() => socket.dispatchEvent(new CloseEvent("close", { code: 1006 })), 5);
  return socket;
}, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 });
"""


def test_a_page_counts_down_to_its_next_try_and_tells_the_round_trip_once_it_is_back(site, visit):
    page = visit(site)
    begin(page)
    page.add_init_script(AWAY)
    page.reload()
    countdown = re.compile(r"Reconnecting · try [3-9] in [1-9] s")
    page.locator("#connection", has_text=countdown).wait_for(timeout=SLOW)
    page.click("#connection")
    assert re.search(r"Next try: try \d in \d s", page.inner_text("#link-facts"))
    assert "Round trip: not measured yet" in page.inner_text("#link-facts")
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("#link").get_by_role("button", name="Close").click()
    shot(page, "connection-countdown-360")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1440, "height": 900})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        shot(page, f"connection-countdown-{scheme}")
    page.evaluate("window.away = false")
    chip(page, "live")
    page.click("#connection")
    page.locator("#link-facts", has_text=re.compile(r"Round trip: \d+ ms")).wait_for(timeout=SLOW)
    assert "Next try: none is due" in page.inner_text("#link-facts")


def test_the_other_pages_tell_their_round_trip_too(site, visit):
    page = visit(site)
    page.goto(site.url)
    live(page)
    page.click("#connection")
    page.locator("#link-facts", has_text=re.compile(r"Round trip: \d+ ms")).wait_for(timeout=SLOW)
