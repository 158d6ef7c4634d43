from .conftest import live
from .shots import shot
from .test_chat import PROMPTS, SLOW, quiet, say, still


def visit_thread(page, site, title):
    page.goto(f"{site.url}/chat/?resource=team")
    page.get_by_role("link", name=title).click()
    live(page)


def test_what_one_conversation_learns_the_page_of_another_shows(site, visit):
    page = visit(site)
    visit_thread(page, site, "The garden")
    other = page.context.new_page()
    visit_thread(other, site, "The workshop")
    assert "Shared by 2 conversations" in other.inner_text("#gauges")
    other.wait_for_selector("#others li:has-text('The garden')", timeout=SLOW)

    for answers, prompt in enumerate([*PROMPTS, "Thank you, that is all."], 2):
        say(page, prompt)
        quiet(page, answers)
    still(page)

    line = other.locator("#observations .line", has_text="Tom").first
    line.wait_for(timeout=SLOW)
    other.wait_for_selector("#observations .of:has-text('The garden')", timeout=SLOW)
    still(other)
    told = other.locator("#told summary")
    if told.count():
        told.click()
    for width, height in ((1440, 900), (360, 740)):
        other.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            other.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if width == 360:
                other.locator("label", has_text="Memory").last.click()
                shot(other, f"shared-memory-{width}-{scheme}")
                other.locator("label", has_text="Chat").click()
            shot(other, f"shared-{width}-{scheme}")
            shot_of_first(page, width, height, scheme)
            assert other.evaluate("document.documentElement.scrollWidth") <= width

    other.set_viewport_size({"width": 1440, "height": 900})
    other.locator("#observations .of").first.click()
    other.wait_for_url("**/chat/**")
    live(other)
    assert "The garden" in other.inner_text("#title")


def test_what_people_changed_is_in_the_log(site, visit):
    page = visit(site)
    page.goto(f"{site.url}/chat/?resource=shop")
    page.get_by_role("link", name="Prices", exact=False).last.click()
    live(page)
    log = page.locator("#entries")
    for text in ("edited by ada", "Pinned by ada", "Forked to", "Left out of this request"):
        assert text in log.inner_text()
    assert "4711" not in page.content()
    page.locator("summary", has_text="edited by ada").click()
    assert "The price rose in May." in log.inner_text()
    for width, height in ((1440, 1200), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            shot(page, f"changes-{width}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Prices next year").last.click()
    live(page)
    assert "Forked from Prices by ada" in " ".join(page.inner_text("#entries").split())


def shot_of_first(page, width, height, scheme):
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    shot(page, f"shared-first-{width}-{scheme}")
