"""Without a script, what needs one is not offered, and the rest is done by plain forms."""

import pytest

from .shots import shot

NEEDS_ONE = "button[data-do], button[data-open], button[data-rename], button[data-copy]"


@pytest.fixture
def plain(site, chromium):
    """Open the site as Ada in a browser without JavaScript."""
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/")
    page.get_by_role("button", name="Continue as Ada").click()
    yield page
    context.close()


def nothing_idle(page):
    """Tell whether no button is shown that does nothing."""
    return not any(each.is_visible() for each in page.locator(NEEDS_ONE).all())


def test_a_conversation_is_renamed_by_a_form_below_it(site, plain):
    plain.goto(f"{site.url}/chat/?resource=shop")
    assert nothing_idle(plain)
    plain.get_by_role("link", name="Stumbled").first.click()
    here = plain.url
    assert nothing_idle(plain)
    assert plain.evaluate("document.activeElement === document.body && scrollY === 0")
    plain.fill("#rename [name=title]", "Stumbled and stood up")
    shot(plain, "without-script-chat")
    plain.get_by_role("button", name="Rename").click()
    plain.goto(here)
    assert plain.inner_text("h1") == "Stumbled and stood up"


def test_a_token_is_revoked_by_a_form_below_it(site, plain):
    plain.goto(f"{site.url}/account/tokens/")
    plain.get_by_role("textbox", name="Name").fill("Nightly")
    plain.get_by_role("button", name="Make token").click()
    assert nothing_idle(plain)
    shot(plain, "without-script-tokens")
    made = plain.get_by_role("row").filter(has_text="Nightly")
    made.get_by_role("button", name="Revoke").click()
    plain.goto(f"{site.url}/account/tokens/")
    assert "revoked" in plain.inner_text(".tokens")


@pytest.mark.parametrize("place", ["", "agents/demo/", "lab/", "settings/", "memory/"])
def test_no_page_offers_what_does_nothing(site, plain, place):
    plain.goto(f"{site.url}/{place}")
    assert nothing_idle(plain)
