import pytest

from .conftest import Site, live
from .shots import shoot


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """Serve a world in which something fails, runs and is full, and stays so."""
    site = Site(tmp_path_factory.mktemp("still"), "tests/browser/still.py", "full").wait()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Serve a world without a conversation."""
    site = Site(tmp_path_factory.mktemp("bare"), "tests/browser/still.py", "empty").wait()
    yield site
    site.stop()


def go(page, site, path):
    page.goto(f"{site.url}{path}")
    live(page)


def as_admin(page, site):
    page.context.clear_cookies()
    page.goto(f"{site.url}/sign-in/")
    page.get_by_role("button", name="Continue as Admin").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    live(page)
    return page


def shoot_all(page, name):
    """Look at the page as everywhere, and on a very wide screen."""
    page.set_viewport_size({"width": 2560, "height": 1200})
    assert page.evaluate("document.documentElement.scrollWidth") <= 2560
    shoot(page, name)


def test_an_empty_home_says_how_to_begin(bare, visit):
    page = visit(bare)
    go(page, bare, "/")
    assert page.get_by_text("Nothing does.").is_visible()
    shoot_all(page, "home-empty")
    page.get_by_role("link", name="Start a conversation").click()
    page.wait_for_url("**/chat/")


def test_home_shows_what_fails_what_runs_and_what_is_recent(still, visit):
    page = visit(still)
    go(page, still, "/")
    attention = page.locator("#attention")
    for said in ("Observation failed", "Answer interrupted", "over the ceiling", "No such model"):
        assert attention.get_by_text(said).first.is_visible()
    clock = page.locator("#running time").first
    before = clock.inner_text()
    page.wait_for_function(
        "before => document.querySelector('#running time').textContent !== before", arg=before
    )
    shoot_all(page, "home-busy")
    page.locator("#recent").get_by_role("link", name="Kitchen refit").click()
    page.wait_for_url("**/chat/*-*/")
    live(page)


def test_home_follows_what_happens_without_being_asked(site, visit):
    page = visit(site)
    other = page.context.new_page()
    go(other, site, "/")
    before = other.locator("#spent").inner_text()
    page.get_by_role("textbox", name="Message").fill("Mara wants a fig tree.")
    page.keyboard.press("Enter")
    other.wait_for_function(
        "before => document.querySelector('#spent').innerText !== before", arg=before
    )
    live(page)


def test_an_administrator_sees_home_as_somebody_else_sees_it(still, visit):
    page = as_admin(visit(still), still)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("ada")
    page.get_by_role("option", name="view as ada").click()
    page.get_by_role("heading", name="Home as ada sees it").wait_for()
    live(page)
    shoot(page, "home-as")
    page.get_by_role("link", name="Leave").click()
    page.wait_for_url(f"{still.url}/")
    live(page)
