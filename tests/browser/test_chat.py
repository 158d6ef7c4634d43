import json
import re

import pytest

from .conftest import live
from .shots import shot

PROMPTS = [
    "I am refitting my kitchen. The budget is 9,000 euros and the fitter Tom comes on June 3.",
    "My sister Mara is allergic to peanuts and visits every Sunday; she lives in Porto.",
    "Quote A for the worktop is 1,840 euros; quote B is 1,690 but excludes fitting for 220.",
    "Can you compare the two quotes for the worktop again?",
    "I decided for oak over laminate, and the old oven, a Bosch from 2009, should be sold.",
    "The electrician Jonas wants 650 euros for moving two sockets and can come on May 28.",
    "We moved the fitter to June 10 because the oak comes late. What is the budget?",
    "Mara arrives on Friday this time. Please remember that she likes almond cake.",
]
SLOW = 30_000
REST = 2_500
ETAGS = "[...document.querySelectorAll('[data-etag]')].map((e) => e.dataset.etag).join()"
CLOCKLESS = """root => {
  const copy = document.querySelector(root).cloneNode(true);
  copy.querySelectorAll("time[data-since], time[data-ago]").forEach((t) => { t.textContent = ""; });
  copy.querySelectorAll(".news-begin").forEach((e) => { e.classList.remove("news-begin"); });
  copy.querySelectorAll("*").forEach((e) => {
    ["open", "data-htmx-powered", "style"].forEach((name) => e.removeAttribute(name));
    if (e.getAttribute("class") === "") e.removeAttribute("class");
    const attributes = [...e.attributes].map((a) => [a.name, a.value]).sort();
    attributes.forEach(([name]) => e.removeAttribute(name));
    attributes.forEach(([name, value]) => e.setAttribute(name, value));
  });
  return copy.innerHTML;
}"""


def begin(page):
    if page.viewport_size["width"] < 1100:
        page.locator("label", has_text="Threads").click()
    page.get_by_role("button", name="New thread").click()
    live(page)


def say(page, text):
    page.fill("#message", text)
    page.press("#message", "Enter")


def quiet(page, answers):
    """Wait until so many messages are answered and nothing is under way."""
    page.wait_for_function(
        "n => document.querySelectorAll('#entries [data-by=assistant]').length === n",
        arg=answers,
        timeout=SLOW,
    )
    page.wait_for_selector("[data-stop]", state="detached", timeout=SLOW)
    page.wait_for_selector("#operations progress", state="detached", timeout=SLOW)
    page.wait_for_function(
        "() => document.querySelector('#queue').children.length === 0", timeout=SLOW
    )


def still(page):
    """Wait until background work has come to rest: one cycle can start right after another."""
    before = None
    while (now := page.evaluate(ETAGS)) != before or page.locator("progress").count():
        before = now
        page.wait_for_timeout(REST)


def shoot_everywhere(page):
    """Take the page wide, narrow and in between, light and dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        shot(page, f"wide-{scheme}")
    page.set_viewport_size({"width": 360, "height": 740})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator("label", has_text="Chat").click()
        shot(page, f"phone-chat-{scheme}")
        page.locator("label", has_text=re.compile("^Memory$")).click()
        shot(page, f"phone-memory-{scheme}")
    page.set_viewport_size({"width": 900, "height": 740})
    shot(page, "middle-memory")


def test_a_conversation_streams_and_becomes_memory_in_every_tab(site, visit):
    page = visit(site)
    begin(page)
    other = page.context.new_page()
    other.goto(page.url)
    live(other)
    buffering = other.locator("#entries .badge[data-state=buffering]").first

    say(page, PROMPTS[0])
    page.wait_for_selector("#draft article", timeout=SLOW)
    shot(page, "streaming")
    for prompt in PROMPTS[1:3]:
        say(page, prompt)
    buffering.wait_for(timeout=SLOW)
    shot(other, "buffering")
    for answers, prompt in enumerate([*PROMPTS[3:], "Thank you, that is all for today."], 3):
        quiet(page, answers)
        say(page, prompt)
    page.wait_for_selector("#observations .line", timeout=SLOW)
    quiet(page, len(PROMPTS) + 1)
    still(page)

    other.wait_for_selector("#observations .line", timeout=SLOW)
    assert page.locator("#entries .badge[data-state=activated]").count() > 0
    before = {part: page.evaluate(CLOCKLESS, part) for part in ("#log", "#panel")}
    page.reload()
    live(page)
    after = {part: page.evaluate(CLOCKLESS, part) for part in before}
    assert after == before
    for part, html in before.items():
        other.wait_for_function(
            f"([part, html]) => ({CLOCKLESS})(part) === html", arg=[part, html], timeout=SLOW
        )

    page.locator("#observations .line a").first.click()
    page.wait_for_selector("#drawer[open] .sources li")
    shot(page, "drawer")
    page.keyboard.press("Escape")
    assert not page.locator("#drawer").is_visible()
    page.locator("#entries .badge[data-state=activated]").last.click()
    assert page.locator(".marker details[open] .facts").is_visible()
    shoot_everywhere(page)


def test_of_a_log_that_goes_on_a_page_is_sent_what_came(site, visit):
    page, frames = visit(site), []
    begin(page)

    def listen(socket):
        socket.on("framereceived", lambda text: frames.append(json.loads(text)))

    page.on("websocket", listen)
    page.reload()
    live(page)
    for answers, prompt in enumerate(PROMPTS[:3], 1):
        say(page, prompt)
        quiet(page, answers)
    still(page)

    told = [frame["content"] for frame in frames if "entries" in frame.get("patched", {})]
    assert told
    assert 'id="m1-0"' not in told[-1]
    shown = page.evaluate(CLOCKLESS, "#log")
    page.reload()
    live(page)
    assert page.evaluate(CLOCKLESS, "#log") == shown


def test_nothing_is_wider_than_a_phone(site, visit):
    page = visit(site, width=360, height=740)
    begin(page)
    say(page, "word" * 100 + " and `code " + "long" * 60 + "`")
    page.wait_for_selector("#entries article[data-by=assistant]", timeout=SLOW)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelector('#log').scrollWidth") <= 360


def test_an_answer_can_be_stopped_and_keeps_what_was_said(site, visit):
    page = visit(site)
    begin(page)
    say(page, "Tell me everything. " + " ".join(PROMPTS))
    page.wait_for_selector("#draft article", timeout=SLOW)

    page.keyboard.press("Control+.")

    page.wait_for_selector("#entries .ended", timeout=SLOW)
    assert "Stopped" in page.inner_text("#entries .ended")


def test_a_second_message_waits_visibly_and_can_be_withdrawn(site, visit):
    page = visit(site)
    begin(page)
    say(page, PROMPTS[0])
    say(page, "Wait, forget that.")
    row = page.locator("#queue li", has_text="Wait, forget that.")
    row.wait_for(timeout=SLOW)

    row.get_by_role("button", name="Withdraw").click()

    row.wait_for(state="detached", timeout=SLOW)
    quiet(page, 1)
    assert "Wait, forget that." not in page.inner_text("#log")


def test_what_was_sent_without_a_connection_arrives_once_it_is_back(site, visit):
    page = visit(site)
    begin(page)
    cut = [True]
    page.route_web_socket(
        re.compile("/ws/chat/"),
        lambda ws: ws.close(code=1011) if cut else ws.connect_to_server(),
    )
    page.reload()
    page.wait_for_selector("#connection[data-state=reconnecting]")
    say(page, "Are you there?")
    assert "Are you there?" in page.inner_text("#outbox")
    cut.clear()

    page.wait_for_selector("#entries article[data-by=assistant]", timeout=SLOW)
    assert page.locator("#entries article[data-by=user]").count() == 1
    assert page.locator("#outbox li").count() == 0


def test_without_a_socket_the_page_polls(site, visit):
    page = visit(site)
    begin(page)
    page.route_web_socket(re.compile("/ws/chat/"), lambda ws: ws.close(code=1000))
    page.reload()
    page.wait_for_selector("#connection[data-state=polling]", timeout=SLOW)

    say(page, "Can you hear me through the wall?")

    page.wait_for_selector("#entries article[data-by=assistant]", timeout=SLOW * 2)


def test_an_open_marker_and_a_half_typed_message_survive_live_updates(site, visit):
    page = visit(site)
    begin(page)
    for answers, prompt in enumerate(PROMPTS[:4], 1):
        say(page, prompt)
        quiet(page, answers)
    page.wait_for_selector("#entries .marker summary", timeout=SLOW)
    page.locator("#entries .marker summary").first.click()
    say(page, PROMPTS[4])
    page.fill("#message", "half a tho")
    quiet(page, 5)

    assert page.locator("#entries .marker details").first.get_attribute("open") is not None
    assert page.input_value("#message") == "half a tho"
    page.reload()
    assert page.input_value("#message") == "half a tho"


def test_somebody_who_signed_out_elsewhere_keeps_what_was_written(site, visit):
    page = visit(site)
    begin(page)
    other = page.context.new_page()
    other.goto(f"{site.url}/chat/")
    other.locator("summary", has_text="ada").last.click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in/")

    say(page, "Am I still here?")
    page.wait_for_selector("#sign-in-again:not([hidden])", timeout=SLOW)

    assert "Am I still here?" in page.inner_text("#outbox")
    page.locator("#sign-in-again").click()
    page.get_by_role("button", name="Continue as Ada").click()
    page.wait_for_selector("#entries article[data-by=assistant]", timeout=SLOW)
    assert page.locator("#entries article[data-by=user]").count() == 1


def test_keys_move_between_regions_and_hide_the_panel(site, visit):
    page = visit(site)
    begin(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#log")
    page.keyboard.press("F6")
    assert page.evaluate("document.activeElement.id") == "message"
    page.keyboard.press("F6")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("b")
    assert not page.locator("#panel").is_visible()
    page.keyboard.press("b")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_kept_by_the_server(site, visit, theme):
    page = visit(site)
    begin(page)
    while page.evaluate("document.documentElement.dataset.theme") != theme:
        page.get_by_role("button", name="Change theme").click()
    page.reload()

    assert page.get_attribute("html", "data-theme") == theme


# ---- what a reply held, what a marker covered, and branches


def talked(page, prompts):
    for answers, prompt in enumerate(prompts, 1):
        say(page, prompt)
        quiet(page, answers)


def test_a_marker_shows_which_messages_it_covered(site, visit):
    page = visit(site)
    begin(page)
    talked(page, PROMPTS[:3])
    marker = page.locator(".marker[data-first]").first
    marker.wait_for(timeout=SLOW)
    first, last = (int(marker.get_attribute(f"data-{end}")) for end in ("first", "last"))
    marker.locator("summary").focus()
    marked = page.evaluate(
        "[...document.querySelectorAll('.bracketed')].map((e) => +e.dataset.position)"
    )
    assert set(marked) == set(range(first, last + 1))
    page.focus("#message")
    assert page.locator(".bracketed").count() == 0


def test_an_earlier_message_is_sent_changed_and_both_branches_stay(site, visit):
    page = visit(site)
    begin(page)
    talked(page, PROMPTS[:2])
    before = page.url
    page.focus("#message")
    page.keyboard.press("ArrowUp")
    assert page.input_value("#message") == PROMPTS[1]
    page.fill("#message", "My sister Mara is allergic to almonds.")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/chat/" in url and url != before)
    live(page)
    quiet(page, 2)
    assert "almonds" in page.inner_text("#log")
    assert "peanuts" not in page.inner_text("#log")
    page.get_by_label("The branch before").click()
    page.wait_for_url(before)
    live(page)
    assert "peanuts" in page.inner_text("#log")
    assert page.get_by_role("group", name="Branch 1 of 2").is_visible()


def test_escape_leaves_an_earlier_message_as_it_was(site, visit):
    page = visit(site)
    begin(page)
    talked(page, PROMPTS[:1])
    page.get_by_role("link", name="Edit").click()
    assert page.is_visible("#editing")
    page.keyboard.press("Escape")
    assert not page.is_visible("#editing")
    say(page, "Something new")
    quiet(page, 2)
    assert page.locator("#entries article[data-by=user]").count() == 2


def test_the_composer_foretells_the_next_request(site, visit):
    page = visit(site)
    begin(page)
    talked(page, PROMPTS[:1])
    page.fill("#message", "a longer draft " * 30)
    page.locator("#next-parts span", has_text=re.compile(r"^new \d\d")).wait_for(timeout=SLOW)
    assert re.match(r"next \d", page.inner_text("#next-words"))
    used = page.locator("a.used").first
    assert re.match(r"used [\d.k]+ tokens", used.inner_text())
    assert "/requests/1/" in used.get_attribute("href")


def test_folds_and_the_width_of_the_panel_are_kept(site, visit):
    page = visit(site)
    begin(page)
    page.locator("#fold-observations > summary").click()
    page.focus("#split")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.reload()
    live(page)
    assert page.locator("#panel").bounding_box()["width"] == 424
    assert not page.locator("#fold-observations").evaluate("fold => fold.open")


def test_a_temporary_conversation_is_discarded_for_good(site, visit):
    # What the page asks for in the moment its conversation goes is not found any more.
    page = visit(site, expects=["404 (Not Found)"])
    page.goto(f"{site.url}/chat/?resource=ada")
    page.get_by_role("checkbox", name="Temporary").check()
    page.get_by_role("button", name="New thread").click()
    live(page)
    assert page.get_by_text("temporary: never remembered").is_visible()
    talked(page, PROMPTS[:1])
    url = page.url
    page.get_by_role("button", name="Discard…").click()
    page.locator("#discard").get_by_role("button", name="Discard", exact=True).click()
    page.wait_for_url("**/chat/?resource=ada")
    live(page)
    assert page.request.get(url).status == 404


def test_a_link_to_a_message_leads_to_it_wherever_it_lies(site, visit):
    page = visit(site)
    begin(page)
    talked(page, PROMPTS[:1])
    page.goto(f"{page.url}#message-1")
    live(page)
    assert page.evaluate("document.activeElement.dataset.position") == "1"


def test_what_is_new_is_marked_until_it_is_seen(site, visit):
    """Another tab of the same person talks on while the first one is away."""
    page = visit(site)
    begin(page)
    with page.expect_response(lambda told: "through=2&" in (told.request.post_data or "")):
        say(page, "I keep bees on the roof.")
        quiet(page, 1)
    address = page.url
    page.goto(site.url)
    live(page)
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    sent = page.context.request.post(
        f"{address}send",
        form={"text": "The hive has a new queen.", "csrfmiddlewaretoken": token},
        headers={"HX-Request": "true", "Referer": site.url},
    )
    assert sent.ok
    # Other conversations of this world may have as many.
    row = f"#recent-{address.strip('/').rpartition('/')[2]}"
    page.wait_for_selector(f"{row} .fresh:text-is('2 new')", timeout=SLOW)

    with page.expect_response("**/looked"):
        page.goto(address)
        live(page)
    begins = page.locator("#log .news-begin")
    assert "hive" in begins.inner_text()
    assert page.locator("#news a").inner_text() == "2 new messages since you looked"
    shot(page, "news")

    before = page.locator("#log").evaluate("log => log.scrollTop")
    say(page, "Thank you.")
    quiet(page, 3)
    assert begins.count() == 1
    assert "hive" in begins.inner_text()
    assert page.locator("#log").evaluate("log => log.scrollTop") >= before

    address = page.locator("#news a").get_attribute("href")
    page.locator("#news button").click()
    page.wait_for_selector("#log .news-begin", state="detached")
    assert page.locator("#news").count() == 0
    assert page.evaluate("document.activeElement.id") == "message"

    page.goto(page.url + address)
    live(page)
    assert "hive" in page.locator("#log .news-begin").inner_text()
    assert page.locator("#news").count() == 0

    page.goto(f"{site.url}/chat/")
    live(page)
    assert page.locator("#rows .fresh", has_text=" new").count() == 0
