import json

import pytest

from .conftest import Site, fill, live
from .shots import shoot

SLOW = 60_000


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Serve conversations in every state; return the site and the ids of what is in it."""
    folder = tmp_path_factory.mktemp("context")
    made = fill(folder, "-m", "tests.browser.context_world")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="6").wait()
    yield site, json.loads(made)
    site.stop()


@pytest.fixture
def page(world, visit):
    return visit(world[0])


@pytest.fixture
def go(world, page):
    """Return a function that opens a page of a conversation."""
    site, ids = world

    def open_page(name, path="", **query):
        text = "&".join(f"{key}={value}" for key, value in query.items())
        where = f"calls/{ids[name]}/" if name in ("call", "failed") else f"{ids[name]}/{path}"
        page.goto(f"{site.url}/context/{where}{'?' if text else ''}{text}")
        page.wait_for_selector("#main h1")
        if page.locator("[hx-ws\\:connect]").count():
            live(page)
        return page

    return open_page


def test_an_empty_conversation(go):
    page = go("empty")
    assert "nothing is observed yet" in page.inner_text(".blocks")
    shoot(page, "context-empty")


def test_a_conversation_with_memory_and_every_block_open(go):
    page = go("kitchen", draft="Which%20quote%20was%20cheaper?")
    shoot(page, "context-next")
    page.keyboard.press("a")
    page.wait_for_selector("#detail-memory:visible")
    shoot(page, "context-open")


def test_a_request_that_was_sent(go):
    page = go("kitchen", "requests/7/")
    assert "identical to what was sent" in page.inner_text(".trust")
    assert "drift" in page.inner_text("#shown")
    shoot(page, "context-past")


def test_two_requests_side_by_side(go):
    page = go("kitchen", "compare/", a="5", b="7")
    assert page.locator(".difflines ins").count()
    shoot(page, "context-compare")


def test_what_is_supposed_is_marked(go):
    page = go("kitchen", observation_tokens="100", message_tokens="5000", activate="1")
    assert "Simulated" in page.inner_text("#shown")
    shoot(page, "context-simulated")


def test_a_request_over_the_window(go):
    page = go("full")
    assert "would be left out" in page.inner_text("#shown")
    shoot(page, "context-over")


def test_a_request_whose_text_is_gone(go):
    page = go("gone", "requests/7/")
    assert "not kept any more" in page.inner_text("#shown")
    shoot(page, "context-gone")


def test_a_call_and_one_that_failed(go):
    page = go("call")
    assert page.locator(".line").count()
    assert "<observations>" in page.inner_text("#reply")
    shoot(page, "context-call")
    page = go("failed")
    assert "I would rather not say" in page.inner_text("#reply")
    assert "Nothing of this call became memory" in page.inner_text("#asked")
    shoot(page, "context-call-failed")


def test_the_raw_request(go):
    page = go("kitchen", "raw/")
    assert page.locator("[data-role=system]").count() == 1
    shoot(page, "context-raw")


def test_where_something_is(go):
    page = go("kitchen", where="Ruth")
    assert page.locator(".hits li").count() >= 1
    shoot(page, "context-where")
    page = go("kitchen", where="nobody%20said%20this")
    assert "Nowhere" in page.inner_text(".hits")


def test_keys_walk_fold_and_find(go):
    page = go("kitchen")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail-tools:visible")
    assert "open=tools" in page.url
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.dataset.block") == "instructions"
    page.keyboard.press("w")
    assert page.evaluate("document.activeElement.id") == "where"
    page.locator("h1").click()
    page.keyboard.press("d")
    assert page.evaluate("document.activeElement.id") == "against"
    page.locator("h1").click()
    page.keyboard.press("[")
    page.wait_for_url("**/requests/7/1/")
    page.wait_for_selector(".blocks")
    page.keyboard.press("]")
    page.wait_for_url("**/context/*-*/")


def test_a_turn_moves_the_prediction_and_what_is_open_stays(go, page):
    page = go("busy", open="instructions")
    before = page.inner_text(".sum b")
    stop = page.locator(".strip li").count()
    other = page.context.new_page()
    other.goto(page.url.replace("/context/", "/chat/").partition("?")[0])
    live(other)
    for text in ("One more thing about the tiles.", "And about the oven."):
        other.fill("textarea", text)
        other.keyboard.press("Enter")
    page.wait_for_selector("#shown:has-text('which waits')", timeout=SLOW)
    shoot(page, "context-busy")
    page.wait_for_function(
        f"() => document.querySelectorAll('.strip li').length > {stop}", timeout=SLOW
    )
    page.wait_for_selector("#shown:not(:has-text('which waits'))", timeout=SLOW)
    assert page.inner_text(".sum b") != before
    assert page.is_visible("#detail-instructions")
    live(other)
    other.close()
