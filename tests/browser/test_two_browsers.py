"""Who looks on sees what happens as soon as who talks, and goes on seeing it alone."""

import re
from time import monotonic

import pytest

from .axe import violations
from .conftest import Site, fill, live
from .shots import SHOTS
from .test_broken_frames import told
from .test_chat import CLOCKLESS, PROMPTS, SLOW, begin, quiet, say, still

SEEN = """what => {
  window.seen = {};
  const look = () => {
    for (const [name, selector] of Object.entries(what)) {
      if (name in window.seen || !document.querySelector(selector)) continue;
      window.seen[name] = Date.now();
    }
  };
  const all = { childList: true, subtree: true, attributes: true };
  new MutationObserver(look).observe(document.body, all);
  look();
}"""
LONG = """() => {
  window.long = 0;
  const add = (list) => { for (const each of list.getEntries()) window.long += each.duration; };
  new PerformanceObserver(add).observe({ type: "longtask" });
}"""
WHAT = {
    "answering": "#turnbar [data-stop]",
    "buffering": "#entries .badge[data-state=buffering]",
    "operation": "#operations progress",
    "elapsed": "#operations time[data-elapsed]",
    "gauge": "#gauge-messages .live[width]:not([width='0.00%'])",
}
BUFFERED = {"buffered": "#entries .badge[data-state=buffered]", "chunk": "#chunks details details"}
LATEST_MS = 500


@pytest.fixture(scope="module")
def slow_site(tmp_path_factory):
    """Serve a small world whose models take their time."""
    folder = tmp_path_factory.mktemp("slow")
    fill(folder, "tests/browser/world.py")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="12").wait()
    yield site
    site.stop()


def lag(one, other):
    """Return by how many milliseconds the second saw each thing later than the first."""
    seen = [page.evaluate("window.seen") for page in (one, other)]
    assert seen[0].keys() == seen[1].keys()
    return {name: seen[1][name] - at for name, at in seen[0].items()}


def seconds(page):
    return int(page.locator("#operations time[data-elapsed]").inner_text().split(" ")[0])


def test_a_second_browser_sees_all_within_half_a_second_and_alone_to_the_end(slow_site, visit):
    talking = visit(slow_site)
    begin(talking)
    watching = visit(slow_site)
    watching.goto(talking.url)
    live(watching)
    for page in (talking, watching):
        page.evaluate(SEEN, WHAT)
    say(talking, PROMPTS[0])
    for page in (talking, watching):
        page.wait_for_selector("#operations progress", timeout=SLOW)
        page.wait_for_timeout(200)
    late = lag(talking, watching)
    assert set(late) == set(WHAT)
    assert max(late.values()) <= LATEST_MS, late

    watching.wait_for_timeout(1500)
    before = seconds(watching)
    watching.reload()
    live(watching)
    assert before <= seconds(watching) <= before + 4
    assert watching.locator("#entries .badge[data-state=buffering]").count() == 1

    talking.close()
    for selector in BUFFERED.values():
        watching.wait_for_selector(selector, timeout=SLOW, state="attached")


def test_a_busy_page_keeps_nobody_out(slow_site, visit):
    page = visit(slow_site)
    begin(page)
    say(page, PROMPTS[0])
    page.wait_for_selector("#operations progress", timeout=SLOW)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        page.screenshot(path=SHOTS / f"chat-busy-{scheme}.png")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("stage"), "-m", "tests.browser.stage").wait()
    yield site
    site.process.kill()
    site.stop()


def test_the_page_answers_while_six_hundred_words_stream_in(stage, visit):
    page = visit(stage)
    thread = told(stage, page, "new 1")
    page.goto(f"{stage.url}/chat/{thread}/")
    live(page)
    page.evaluate(LONG)
    page.focus("#message")
    assert told(stage, page, f"stream {thread} 600") == "streamed"
    page.keyboard.type("typed meanwhile")
    page.wait_for_selector("#draft :text('word599')", timeout=SLOW)
    assert page.input_value("#message") == "typed meanwhile"
    assert page.evaluate("window.long") < 1000


def test_the_socket_opens_in_a_hundred_loads_of_a_hundred(site, visit):
    page = visit(site)
    begin(page)
    opened = 0
    for _ in range(100):
        page.reload()
        page.wait_for_selector("#connection[data-state=live]", timeout=10_000)
        opened += 1
    assert opened == 100


def test_the_socket_is_heard_of_however_late_the_script_that_listens(site, visit):
    page = visit(site)

    def late(route):
        page.wait_for_timeout(1500)
        route.continue_()

    page.route("**/studio*.js", late)
    page.reload()
    page.wait_for_selector("#connection[data-state=live]", timeout=SLOW)


def test_the_panel_in_a_window_of_its_own_follows_and_asks_for_no_more_than_others(site, visit):
    page, asked = visit(site), []
    begin(page)
    panel = page.context.new_page()

    def listen(socket):
        socket.on("framesent", lambda text: asked.append(text))

    panel.on("websocket", listen)
    panel.goto(f"{page.url}panel/")
    live(panel)
    began = monotonic()
    for answers, prompt in enumerate(PROMPTS[:3], 1):
        say(page, prompt)
        quiet(page, answers)
    still(page)

    gauges = page.evaluate(CLOCKLESS, "#gauges")
    follows = f"html => ({CLOCKLESS})('#gauges') === html"
    panel.wait_for_function(follows, arg=gauges, timeout=SLOW)
    haves = sum('"have"' in text for text in asked)
    assert haves <= 2 + (monotonic() - began) / 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_state_of_the_chat_keeps_people_out(site, visit, scheme):
    page = visit(site, scheme=scheme)
    begin(page)
    assert violations(page) == []
    page.goto(f"{site.url}/chat/?resource=shop")
    page.get_by_role("link", name="Stumbled", exact=True).click()
    page.wait_for_selector("#turnbar .bad", timeout=SLOW)
    live(page)
    assert page.locator(".marker details[open]", has_text="did not answer in time").is_visible()
    assert violations(page) == []
    page.screenshot(path=SHOTS / f"chat-failed-{scheme}.png")
    page.goto(f"{page.url}panel/")
    live(page)
    assert violations(page) == []
    page.goto(page.url.replace("panel/", ""))
    live(page)
    page.set_viewport_size({"width": 360, "height": 740})
    for view in ("Memory", "Threads", "Chat"):
        page.locator(".tabs label", has_text=re.compile(f"^{view}$")).click()
        assert violations(page) == [], view


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_offline_messages_wait_visibly_and_keep_nobody_out(site, visit, scheme):
    page = visit(site, scheme=scheme, expects=["ERR_INTERNET_DISCONNECTED", "Failed to load"])
    begin(page)
    page.context.set_offline(True)
    page.wait_for_selector("#connection[data-state=offline]", timeout=SLOW)
    say(page, "Are you there?")
    assert "Will be sent when back" in page.inner_text("#outbox")
    assert violations(page) == []
    page.screenshot(path=SHOTS / f"chat-offline-{scheme}.png")
    page.locator("#outbox button").click()
    assert page.locator("#outbox li").count() == 0
    page.context.set_offline(False)


def test_who_may_only_look_finds_nothing_to_do(site, chromium):
    context = chromium.new_context(viewport={"width": 1440, "height": 820})
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/?next=/chat/%3Fresource%3Dshop")
    page.get_by_role("button", name="Continue as Ben").click()
    page.get_by_role("link", name="Stumbled", exact=True).click()
    live(page)
    assert page.get_by_text("You may read this conversation, not write in it.").is_visible()
    for name in ("Send", "Retry", "Retry now", "Fork", "Observe now", "New thread", "Rename"):
        assert page.get_by_role("button", name=name, exact=True).count() == 0, name
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
    page.screenshot(path=SHOTS / "chat-viewer.png")
    context.close()
