import re

from .conftest import live
from .test_home import as_admin, bare, go, shoot, still

__all__ = ["bare", "still"]


def open_settings(page, site, title="Kitchen refit"):
    go(page, site, "/settings/")
    page.get_by_role("link", name=title).click()
    page.wait_for_url("**/settings/*-*/")
    live(page)


def redrawn(page, act):
    """Do something and wait until the preview is another."""
    before = page.locator("#preview").inner_html()
    act()
    page.wait_for_function(
        "before => document.querySelector('#preview').innerHTML !== before", arg=before
    )


def test_the_places_to_set_are_listed(still, bare, visit):
    page = visit(still)
    go(page, still, "/settings/")
    assert page.get_by_text("own options").count() >= 1
    shoot(page, "settings-index")
    page = visit(bare)
    go(page, bare, "/settings/")
    assert page.get_by_text("No conversations yet.").is_visible()


def test_the_gauge_is_redrawn_while_one_types_and_focus_stays(still, visit):
    page = visit(still)
    open_settings(page, still)
    shoot(page, "settings-thread")
    field = page.get_by_label("Messages before observation")
    redrawn(page, lambda: field.fill("100"))
    assert page.locator("#preview .gauge").first.inner_text().count("/ 100") == 1
    assert page.get_by_text("tokens will be observed at once").is_visible()
    assert page.evaluate("document.activeElement.name") == "message_tokens"
    shoot(page, "settings-effect")


def test_what_cannot_be_is_said_at_its_field_as_one_types(still, visit):
    page = visit(still)
    open_settings(page, still)
    field = page.get_by_label("Observe ahead every")
    redrawn(page, lambda: field.fill("9000"))
    fault = page.locator("#said-buffer_tokens .fault")
    assert "must be less than 900" in fault.inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    shoot(page, "settings-invalid")
    redrawn(page, lambda: field.fill("off"))
    assert fault.count() == 0
    assert field.get_attribute("aria-invalid") is None
    assert page.locator("#said-buffer_tokens .mix").is_visible()


def test_saving_is_told_and_undone_by_keyboard(still, visit):
    page = visit(still)
    open_settings(page, still)
    page.get_by_label("Turns wait from").fill("2")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"[?]undo="))
    live(page)
    assert page.get_by_text("Saved: Turns wait from.").is_visible()
    assert page.get_by_label("Turns wait from").input_value() == "2"
    assert page.locator("#history").get_by_text("not set").first.is_visible()
    page.get_by_role("button", name="Undo the last change").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/settings/[^?]*/$"))
    live(page)
    assert page.get_by_label("Turns wait from").input_value() == "1.2"


def test_a_model_is_tested_where_it_is_named(still, visit):
    page = visit(still)
    open_settings(page, still)
    page.get_by_label("Observer's model").fill("8000 offline\n90000 openai-compatible:none")
    page.locator("#option-observer_model").get_by_role("button", name="Test").click()
    outcome = page.locator("#tried-observer")
    outcome.get_by_text("✓ answers").wait_for()
    assert outcome.get_by_text("has no address").is_visible()
    assert page.get_by_label("Observer's model").input_value().startswith("8000 offline")
    shoot(page, "settings-tested")


def test_another_scope_is_explained_before_it_is_chosen(still, visit):
    page = visit(still)
    open_settings(page, still)
    page.get_by_role("link", name="Share one memory…").click()
    drawer = page.locator("#drawer")
    drawer.get_by_text("will share one memory").wait_for()
    assert drawer.get_by_text("tokens will be observed at once").is_visible()
    shoot(page, "settings-scope")
    page.keyboard.press("Escape")
    assert not drawer.is_visible()


def test_an_agents_options_are_read_by_ada_and_set_by_the_admin(still, visit):
    page = visit(still)
    go(page, still, "/settings/agents/tiered/")
    assert page.get_by_text("You may read these options, but not change them.").is_visible()
    assert page.get_by_text("up to 60k, 36k needed").is_visible()
    shoot(page, "settings-read-only")
    as_admin(page, still)
    go(page, still, "/settings/agents/broken/")
    assert "must be less than 30000" in page.locator("#said-buffer_tokens").inner_text()
    shoot(page, "settings-agent-broken")


def test_options_are_set_without_a_script(still, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{still.url}/sign-in/")
    page.get_by_role("button", name="Continue as Ada").click()
    page.goto(f"{still.url}/settings/")
    page.get_by_role("link", name="Taxes").click()
    page.get_by_label("Messages before observation").fill("100")
    page.get_by_role("button", name="Save").click()
    assert page.get_by_text("Nothing was saved yet.").is_visible()
    page.get_by_role("button", name="Save").click()
    assert page.get_by_text("Saved: Messages before observation.").is_visible()
    page.get_by_role("button", name="Undo the last change").click()
    assert page.get_by_text("The options are as they were.").is_visible()
    context.close()
