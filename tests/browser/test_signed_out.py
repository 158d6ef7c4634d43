"""Whoever signs out, or is signed out, loses nothing and leaves nothing to the next person."""

from .test_chat import SLOW, begin, live, say, talked


def leave(site, page):
    """Sign out in another tab, which stays open."""
    other = page.context.new_page()
    other.goto(f"{site.url}/agents/")
    other.locator("summary", has_text="ada").last.click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in/")
    return other


def enter(page, name):
    page.get_by_role("button", name=f"Continue as {name}").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    live(page)


def test_a_message_sent_anew_by_somebody_signed_out_stays_in_its_box(site, visit):
    page = visit(site, expects=["401"])
    begin(page)
    talked(page, ["Oak or laminate?"])
    here = page.url
    page.focus("#message")
    page.keyboard.press("ArrowUp")
    leave(site, page)
    page.fill("#message", "Oak, ash or laminate?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#refusal:not([hidden])", timeout=SLOW)
    assert "You are signed out" in page.inner_text("#refusal")
    assert page.input_value("#message") == "Oak, ash or laminate?"
    assert page.is_visible("#sign-in-again")
    assert page.url == here


def test_a_form_of_somebody_signed_out_stays_open_with_what_was_typed(site, visit):
    page = visit(site, expects=["401"])
    begin(page)
    here = page.url
    page.keyboard.press("F2")
    leave(site, page)
    page.fill("#rename [name=title]", "A name that took a while")
    page.press("#rename [name=title]", "Enter")
    page.wait_for_selector("#toasts .toast", timeout=SLOW)
    assert "What you typed is still here" in page.inner_text("#toasts")
    assert page.input_value("#rename [name=title]") == "A name that took a while"
    assert page.url == here


def test_who_signs_in_next_finds_no_words_of_the_person_before(site, visit):
    page = visit(site)
    page.goto(f"{site.url}/chat/?resource=shop")
    live(page)
    page.locator("a", has_text="Stumbled").first.click()
    page.wait_for_selector("#message")
    live(page)
    here = page.url
    page.fill("#message", "Only Ada may read this")
    page.reload()
    assert page.input_value("#message") == "Only Ada may read this"
    page.route_web_socket("**/ws/**", lambda ws: ws.close(code=1011))
    page.reload()
    say(page, "Nor this, which waits")
    assert "Nor this" in page.inner_text("#outbox")
    other = leave(site, page)
    page.close()
    enter(other, "Ben")
    other.goto(here)
    live(other)
    assert "Nor this" not in other.inner_text("body")
    assert other.locator("#outbox li").count() == 0
