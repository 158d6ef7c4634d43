"""The memory page: reading its history, and editing it while it moves."""

import json
import re
from time import monotonic
from types import SimpleNamespace

import pytest

from .axe import violations
from .conftest import Site, fill, live
from .shots import shot
from .test_chat import PROMPTS, quiet, say

SLOW = 20_000
REFUSED = "status of 409"
STATES = {
    "empty": "/memory/{empty}/",
    "one": "/memory/{one}/",
    "many": "/memory/{kitchen}/",
    "agent": "/memory/{kitchen}/?seen=agent",
    "diff": "/memory/{kitchen}/?rev=8&with=2&view=diff",
    "sides": "/memory/{kitchen}/?rev=8&with=2&view=diff&sides=two",
    "raw": "/memory/{kitchen}/?view=raw",
    "reflection": "/memory/{kitchen}/?rev=6",
    "found": "/memory/{kitchen}/?q=where+is+Ruth",
    "failed": "/memory/{kitchen}/?cycle={cycle}",
    "resource": "/memory/of/ada/",
}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """Serve memories in every state; ``ids`` names them."""
    folder = tmp_path_factory.mktemp("memory")
    made = fill(folder, "tests/browser/memory_world.py")
    site = Site(folder, "manage.py", "serve", "--port").wait()
    yield SimpleNamespace(url=site.url, ids=json.loads(made))
    site.stop()


def go(page, studio, address):
    page.goto(studio.url + address.format(**studio.ids))
    live(page)


class Somebody:
    """Change memory as another tab of the same person would, through the same server."""

    def __init__(self, page, studio):
        self.page, self.studio = page, studio
        self.token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()

    def post(self, address, **fields):
        return self.page.context.request.post(
            self.studio.url + address,
            form={**fields, "csrfmiddlewaretoken": self.token},
            headers={"HX-Request": "true", "Referer": self.studio.url},
        )

    def note(self, thread, text):
        answer = self.post(f"/memory/{thread}/note", text=text)
        assert answer.status == 204
        return int(re.search(r"/undo/(\d+)", answer.headers["x-undo"])[1])


def line_ids(page):
    return page.eval_on_selector_all("#rows [data-row]", "rows => rows.map(row => row.id.slice(5))")


def until(page, condition):
    """Wait until a condition holds; the page's policy lets no script be made of text there."""
    began = monotonic()
    while not page.evaluate(condition):
        assert monotonic() - began < SLOW / 1000, condition
        page.wait_for_timeout(50)


def rows_are(page, count):
    """Wait until so many lines are shown."""
    rows = "document.querySelectorAll('#rows .line[data-row]')"
    until(page, f"{rows}.length == {count}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_open_to_everybody(studio, visit, scheme):
    page = visit(studio, scheme=scheme)
    for name, address in STATES.items():
        page.set_viewport_size({"width": 1440, "height": 900})
        go(page, studio, address)
        assert violations(page) == [], name
        shot(page, f"memory-{name}-{scheme}")
        for width in (360, 2560):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            shot(page, f"memory-{name}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_may_only_read_finds_no_control(studio, chromium, scheme):
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{studio.url}/sign-in/")
    page.click("summary:has-text('Sign in with a password')")
    page.fill("[name=username]", "ben")
    page.fill("[name=password]", "ben")
    page.click("form:has([name=password]) button")
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    live(page)

    go(page, studio, STATES["many"])

    assert page.get_by_text("Read-only").is_visible()
    assert page.locator("[data-edit], [data-pin], [data-forget], #add-note").count() == 0
    assert violations(page) == []
    shot(page, f"memory-reader-{scheme}")
    context.close()


def change(other, thread, number, line, others):
    """Change the memory as somebody else: once the line itself, else others by turns."""
    if number == 50:
        return other.post(f"/memory/lines/{line}/edit", text="Theirs")
    if number % 4 == 1:
        return other.post(f"/memory/lines/{others[number % 9]}/edit", text=f"Edit {number}")
    if number % 4 == 3:
        return other.post(f"/memory/lines/{others[-1]}/forget")
    return other.post(f"/memory/{thread}/note", text=f"Arrived {number}")


def test_while_somebody_types_a_hundred_updates_arrive_and_nothing_is_lost(studio, visit):
    page = visit(studio, height=600, expects=[REFUSED])
    thread = studio.ids["live"]
    go(page, studio, f"/memory/{thread}/")
    other = Somebody(page, studio)
    page.locator("#filters summary").click()
    edited = page.locator("#rows .line").nth(12)
    line = edited.get_attribute("id").removeprefix("line-")
    edited.focus()
    page.keyboard.press("e")
    page.wait_for_selector("#editor")
    page.keyboard.press("Home")
    page.evaluate("window.scrollBy(0, 40)")
    page.wait_for_timeout(300)
    top = page.evaluate("document.querySelector('#editor').getBoundingClientRect().top")
    before = page.input_value("#edit-text")

    typed = ""
    for number in range(100):
        others = [each for each in line_ids(page) if each != line]
        answer = change(other, thread, number, line, others)
        assert answer.status in (204, 409)  # A line chosen on a page that lags may be gone.
        page.keyboard.type("abcdefghij"[number % 10])
        typed += "abcdefghij"[number % 10]
    last = other.note(thread, "Arrived last")

    page.wait_for_selector(f"#head[data-latest='{last}']", timeout=SLOW)
    page.wait_for_selector("#rows :text('Arrived last')", timeout=SLOW)
    assert page.input_value("#edit-text") == typed + before
    assert page.evaluate("document.activeElement.id") == "edit-text"
    caret = page.evaluate(
        "[document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    )
    assert caret == [100, 100]
    assert page.locator("#filters").get_attribute("open") is not None
    assert page.get_by_text("Somebody changed this line meanwhile").is_visible()
    now = page.evaluate("document.querySelector('#editor').getBoundingClientRect().top")
    assert abs(now - top) < 60, (top, now)
    shot(page, "memory-typing")

    page.keyboard.press("Enter")
    page.wait_for_selector(".conflict")
    assert "Theirs" in page.inner_text(".conflict")
    assert typed + before in page.inner_text(".conflict")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_conflict_shows_both_and_either_or_both_can_stay(studio, visit, scheme):
    page = visit(studio, scheme=scheme, expects=[REFUSED])
    go(page, studio, "/memory/{edited}/")
    other = Somebody(page, studio)
    row = page.locator("#rows .line").first
    line = row.get_attribute("id").removeprefix("line-")
    row.focus()
    page.keyboard.press("e")
    page.wait_for_selector("#editor")
    page.fill("#edit-text", f"Mine in {scheme}")
    other.post(f"/memory/lines/{line}/edit", text=f"Theirs in {scheme}")

    page.click("#editor .primary")
    page.wait_for_selector(".conflict")

    said = page.inner_text(".conflict")
    assert f"Mine in {scheme}" in said
    assert f"Theirs in {scheme}" in said
    assert violations(page) == []
    shot(page, f"memory-conflict-{scheme}")
    page.get_by_role("button", name="Keep both").click()
    page.wait_for_selector("#editor", state="detached")
    for text in (f"Mine in {scheme}", f"Theirs in {scheme}"):
        assert page.locator("#rows .words", has_text=text).is_visible()


def test_the_keyboard_works_on_lines(studio, visit):
    page = visit(studio)
    go(page, studio, "/memory/{kitchen}/")
    press = page.keyboard.press
    rows = line_ids(page)

    press("j"), press("j"), press("k")
    assert page.evaluate("document.activeElement.id") == f"line-{rows[0]}"
    press("e")
    page.wait_for_selector("#editor")
    assert page.evaluate("document.activeElement.id") == "edit-text"
    page.keyboard.type(" indeed")
    press("Enter")
    page.wait_for_selector(".toast:has-text('Edited')")
    page.wait_for_selector("#rows .words:has-text('indeed')")
    until(page, "document.activeElement.matches('[data-row]')")
    assert "edit=" not in page.url
    press("u")
    until(page, "!document.querySelector('#rows').innerText.includes('indeed')")

    page.locator("#rows .line").first.focus()
    press("p")
    page.wait_for_selector("#rows .line:first-child .pin")
    page.locator("#rows .line").first.focus()
    press("o")
    page.wait_for_selector("#drawer[open] .provenance")
    assert "message" in page.inner_text("#drawer")
    assert violations(page) == []
    shot(page, "memory-provenance")
    press("Escape")

    count = len(line_ids(page))
    page.locator("#rows .line").first.focus()
    press("Delete")
    until(page, f"document.querySelectorAll('#rows .line[data-row]').length == {count - 1}")
    until(page, "document.activeElement.matches('[data-row]')")
    page.locator(".toast", has_text="Forgotten").get_by_role("button", name="Undo").click()
    rows_are(page, count)


def test_the_keyboard_goes_through_views_and_revisions(studio, visit):
    page = visit(studio)
    go(page, studio, "/memory/{kitchen}/")
    press = page.keyboard.press

    press("d")
    page.wait_for_url("**view=diff**")
    live(page)
    press("[")
    page.wait_for_url("**rev=**")
    live(page)
    press("r")
    page.wait_for_url("**view=raw**")
    live(page)
    press("]")
    page.wait_for_url(lambda url: "rev=" not in url)
    live(page)
    press("/")
    assert page.evaluate("document.activeElement.id") == "memory-q"
    page.keyboard.type("Ruth")
    press("Enter")
    page.wait_for_url("**q=Ruth**")
    live(page)
    assert page.locator("mark").count() >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_several_lines_are_ticked_forgotten_and_brought_back(studio, visit, scheme):
    page = visit(studio, scheme=scheme)
    go(page, studio, "/memory/{kitchen}/")
    before = line_ids(page)
    boxes = page.locator("#rows input[name=line]")
    assert not page.locator("#several").is_visible()

    boxes.nth(0).click()
    boxes.nth(2).click(modifiers=["Shift"])
    assert page.inner_text("#ticked") == "3 lines ticked"
    assert violations(page) == []
    shot(page, f"ticked-{scheme}")

    page.locator(f"#line-{before[4]}").focus()
    page.keyboard.press("x")
    assert page.inner_text("#ticked") == "4 lines ticked"
    page.keyboard.press("Delete")
    rows_are(page, len(before) - 4)
    assert not page.locator("#several").is_visible()
    page.locator(".toast button").last.click()
    rows_are(page, len(before))


def test_shift_compares_two_revisions(studio, visit):
    page = visit(studio)
    go(page, studio, "/memory/{kitchen}/?rev=6")

    page.click("#rev-2", modifiers=["Shift"])
    page.wait_for_url("**view=diff**")
    live(page)

    assert "From revision 2 to 6" in page.inner_text("#rows")


def test_a_restore_says_in_numbers_what_it_changes_and_can_be_undone(studio, visit):
    page = visit(studio)
    go(page, studio, "/memory/{one}/")
    Somebody(page, studio).note(studio.ids["one"], "Ada likes beech")
    page.goto(f"{studio.url}/memory/{studio.ids['one']}/?rev=1")
    live(page)

    page.get_by_role("link", name="Restore this revision").click()
    page.wait_for_selector("#confirm[open]")
    said = " ".join(page.inner_text("#confirm").split())
    assert "1 line goes out of sight" in said
    assert violations(page) == []
    shot(page, "memory-restore")
    page.get_by_role("button", name="Restore revision 1").click()
    page.wait_for_selector(".toast:has-text('Restored revision 1')")
    until(page, "!document.querySelector('#rows').innerText.includes('beech')")
    page.wait_for_url(lambda url: url.endswith("/"))
    page.locator(".toast").get_by_role("button", name="Undo").click()
    page.wait_for_selector("#rows .words:has-text('beech')")


def test_a_change_reaches_every_viewer_at_once(studio, visit):
    one, two = visit(studio), visit(studio)
    for page in (one, two):
        go(page, studio, "/memory/{live}/")
    one.click("#add-note summary")
    one.fill("#note-text", "Seen everywhere")
    one.get_by_role("button", name="Add the note").click()

    two.wait_for_selector("#rows .words:has-text('Seen everywhere')", timeout=5000)
    one.wait_for_selector("#rows .words:has-text('Seen everywhere')", timeout=5000)
    until(one, "!document.querySelector('#note-text').value")


def test_without_a_script_memory_is_read_and_edited_by_forms(studio, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{studio.url}/sign-in/")
    page.get_by_role("button", name="Continue as Ada").click()
    page.goto(f"{studio.url}/memory/{studio.ids['edited']}/")
    page.locator("#rows .line").last.get_by_role("link", name="Edit").click()
    page.fill("#edit-text", "Written without a script")
    page.get_by_role("button", name="Save").click()

    assert page.locator("#rows .words", has_text="Written without a script").is_visible()
    assert page.get_by_role("status").first.inner_text() == "Edited."
    page.goto(f"{studio.url}/memory/{studio.ids['edited']}/?rev=1")
    page.get_by_role("link", name="Restore this revision").click()
    page.get_by_role("button", name="Restore revision 1").click()
    assert page.url.endswith(f"/memory/{studio.ids['edited']}/")
    context.close()


def test_a_link_to_a_line_that_was_replaced_leads_to_where_it_last_stood(studio, visit):
    page = visit(studio, expects=["WebSocket"])  # The first page is left at once.
    go(page, studio, "/memory/{live}/")
    line = line_ids(page)[0]
    answer = Somebody(page, studio).post(f"/memory/lines/{line}/edit", text="Replaced")
    assert answer.status == 204

    page.goto("about:blank")
    page.goto(f"{studio.url}/memory/{studio.ids['live']}/#line-{line}")
    page.wait_for_url("**rev=**")
    live(page)

    assert page.evaluate("document.activeElement.id") == f"line-{line}"


def test_lines_that_are_new_stay_marked_while_the_page_moves_until_they_are_seen(studio, visit):
    page = visit(studio)
    with page.expect_response("**/looked"):
        go(page, studio, "/memory/{one}/")
    go(page, studio, "/chat/{one}/")
    say(page, PROMPTS[1])
    quiet(page, 1)
    other = Somebody(page, studio)
    assert other.post(f"/memory/{studio.ids['one']}/observe").ok
    go(page, studio, "/memory/{one}/")

    marked = page.locator("#rows .unlooked")
    marked.first.wait_for(timeout=SLOW)
    assert "since you looked" in page.locator("#head").inner_text()
    assert page.locator("#rows .line:not(.unlooked)", has_text="Ada likes oak").count() == 1
    shot(page, "memory-news")

    count = marked.count()
    with page.expect_response("**/looked"):
        other.note(studio.ids["one"], "Written meanwhile")
    page.wait_for_selector("#rows .words:has-text('Written meanwhile')", timeout=SLOW)
    assert marked.count() == count

    page.get_by_role("button", name="Mark as seen").click()
    page.wait_for_selector("#rows .unlooked", state="detached")
    assert "since you looked" not in page.locator("#head").inner_text()
