"""The list of conversations: live, found, worked on several at once, deleted and brought back."""

import re

import pytest

from .axe import violations
from .conftest import live
from .shots import SHOTS, shoot
from .test_chat import PROMPTS, SLOW, begin, quiet, say

WIDTHS = (360, 700, 1024, 1440, 2560)


def listed(page, site, query="resource=ada"):
    page.goto(f"{site.url}/chat/?{query}")
    live(page)
    return page


def titles(page):
    return page.locator("#rows [data-open-row]").all_inner_texts()


def row(page, title):
    return page.locator("#rows tr", has=page.get_by_role("link", name=title, exact=True))


def named(page, site, title):
    """Begin a conversation of Ada's with a title, and go to the list."""
    listed(page, site)
    page.get_by_role("button", name="New thread").click()
    page.wait_for_selector("#composer")
    live(page)
    page.keyboard.press("F2")
    page.fill("#rename input[name=title]", title)
    page.press("#rename input[name=title]", "Enter")
    page.wait_for_selector(f"h1:has-text('{title}')", timeout=SLOW)
    return listed(page, site)


def test_a_row_moves_while_its_conversation_does_and_stays_in_its_place(site, visit):
    page = visit(site)
    named(page, site, "Older")
    named(page, site, "Newer")
    before = titles(page)
    talking = page.context.new_page()
    talking.goto(f"{site.url}/chat/?resource=ada")
    row(talking, "Older").get_by_role("link", name="Older", exact=True).click()
    live(talking)
    say(talking, PROMPTS[0])

    row(page, "Older").locator(".badge").wait_for(timeout=SLOW)
    quiet(talking, 1)
    row(page, "Older").locator(".mini .live, .mini .ahead").first.wait_for(timeout=SLOW)
    assert titles(page) == before
    page.locator("#resort button").click()
    page.wait_for_function(
        "() => document.querySelector('#rows [data-open-row]').textContent === 'Older'"
    )


def test_on_a_board_a_card_goes_where_its_conversation_is_at(site, visit):
    page = visit(site)
    named(page, site, "Carded")
    listed(page, site, "resource=ada&view=board")
    rest = page.locator("#rows section", has=page.get_by_role("heading", name="At rest"))
    card = rest.locator(".card", has=page.get_by_role("link", name="Carded", exact=True))
    card.get_by_label("Tick Carded").check()
    talking = page.context.new_page()
    talking.goto(site.url + card.locator("[data-open-row]").get_attribute("href"))
    live(talking)
    say(talking, PROMPTS[0])

    work = page.locator("#rows section", has=page.get_by_role("heading", name="At work"))
    work.locator(".card .badge").first.wait_for(timeout=SLOW)
    assert "Carded" in work.inner_text()
    shoot(page, "threads-board")
    quiet(talking, 1)
    card.wait_for(timeout=SLOW)
    assert card.get_by_label("Tick Carded").is_checked()


def test_ticks_stay_while_rows_are_updated_and_several_are_worked_on(site, visit):
    page = visit(site)
    named(page, site, "First of two")
    named(page, site, "Second of two")
    for title in ("First of two", "Second of two"):
        row(page, title).locator("input").check()
    page.evaluate("window.studio.refresh()")
    page.wait_for_timeout(500)
    assert page.inner_text("#ticked") == "2 ticked"
    page.get_by_role("button", name="Archive").click()
    page.wait_for_selector(".toast:has-text('Archived 2 conversations')")
    row(page, "First of two").wait_for(state="detached")

    listed(page, site, "resource=ada&state=archived")
    assert {"First of two", "Second of two"} <= set(titles(page))
    row(page, "First of two").locator("input").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export JSONL").click()
    assert download.value.suggested_filename.endswith(".jsonl")


def test_deleting_is_undone_with_one_click(site, visit):
    page = visit(site)
    named(page, site, "Deleted by mistake")
    row(page, "Deleted by mistake").locator("input").check()
    page.get_by_role("button", name="Delete…").click()
    row(page, "Deleted by mistake").wait_for(state="detached")

    page.get_by_role("button", name="Undo").click()

    row(page, "Deleted by mistake").wait_for()


def test_what_others_share_asks_for_the_title(site, visit):
    page = visit(site, expects=["422"])
    listed(page, site, "resource=team")
    page.get_by_role("link", name="The workshop", exact=True).click()
    live(page)
    for answers, prompt in enumerate(PROMPTS[:6], 2):
        say(page, prompt)
        quiet(page, answers)
    page.wait_for_selector("#observations .line", timeout=SLOW)
    listed(page, site, "resource=team")
    row(page, "The workshop").locator("input").check()
    page.get_by_role("button", name="Delete…").click()
    ask = page.locator("#asking")
    ask.get_by_text("memory that other conversations share").wait_for(timeout=SLOW)
    assert violations(page) == []
    page.screenshot(path=SHOTS / "threads-erase.png")
    ask.get_by_label(re.compile("^Type")).fill("the workshop")
    ask.get_by_role("button", name="Erase").click()
    ask.get_by_text("That is not what stands above").wait_for()
    ask.get_by_label(re.compile("^Type")).fill("The workshop")
    ask.get_by_role("button", name="Erase").click()
    row(page, "The workshop").wait_for(state="detached", timeout=SLOW)


def test_everything_is_reached_by_keyboard(site, visit):
    page = visit(site)
    named(page, site, "By keyboard")
    page.locator("h1").click()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "By keyboard"
    page.keyboard.press("x")
    assert page.inner_text("#ticked") == "1 ticked"
    page.keyboard.press("F2")
    page.keyboard.type("Renamed by keyboard")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rows :text('Renamed by keyboard')")
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("renamed by")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=renamed+by**")
    live(page)
    assert titles(page) == ["Renamed by keyboard"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_out_and_nothing_is_wider_than_the_window(site, visit, scheme):
    page = visit(site, scheme=scheme)
    begin(page)
    say(page, PROMPTS[0])
    for query in ("resource=ada", "resource=ada&q=zzz", "resource=shop", "resource=ada&q=budget"):
        listed(page, site, query)
        assert violations(page) == [], query
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width in (360, 1440):
            assert violations(page) == []
            page.screenshot(path=SHOTS / f"threads-{width}-{scheme}.png")


def test_without_a_script_conversations_are_found_begun_and_deleted(site, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/?next=/chat/%3Fresource%3Dada")
    page.get_by_role("button", name="Continue as Ada").click()
    page.get_by_role("button", name="New thread").click()
    page.fill("#message", "Without a script")
    page.get_by_role("button", name="Send").click()
    page.goto(f"{site.url}/chat/?resource=ada")
    page.fill("#q", "without a script")
    page.press("#q", "Enter")
    assert page.locator("#rows [data-open-row]").count() == 1
    page.locator("#rows input[name=thread]").check()
    page.get_by_role("button", name="Archive").click()
    assert page.locator("#rows [data-open-row]").count() == 0
    context.close()


def test_an_export_is_imported_and_what_is_wrong_with_a_file_is_said_in_the_form(
    site, visit, tmp_path
):
    page = visit(site, expects=("status of 422",))
    named(page, site, "Oak to keep")
    row(page, "Oak to keep").get_by_role("link", name="Oak to keep", exact=True).click()
    live(page)
    say(page, PROMPTS[0])
    quiet(page, 1)
    listed(page, site)
    row(page, "Oak to keep").get_by_role("checkbox").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export JSONL").click()
    file = tmp_path / "oak.jsonl"
    download.value.save_as(file)
    broken = tmp_path / "broken.jsonl"
    broken.write_text(file.read_text().replace('"format": 1', '"format": 7'))
    page.get_by_text("Import…").click()
    page.set_input_files(".import [name=file]", broken)
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator("#import-errors", has_text="Line 1: format 7 is not known").wait_for()
    shoot(page, "threads-import")
    page.set_input_files(".import [name=file]", file)
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/chat/*-*/", timeout=SLOW)
    page.wait_for_selector("h1:has-text('Oak to keep')")
    assert page.locator("#entries [data-by=assistant]").count() == 1
    assert "Imported 1 conversation with 2 messages." in page.inner_text("body")
