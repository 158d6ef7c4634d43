"""The admin in a browser: it looks right, complains of nothing, and asks first."""

import subprocess
import sys
from pathlib import Path

import pytest

from .axe import violations
from .conftest import ROOT, environment, watch

MAKE_ADMIN = (
    "import django; django.setup();"
    "from django.contrib.auth import get_user_model as u;"
    "u().objects.filter(username='root').exists() or "
    "u().objects.create_superuser('root', password='root')"
)
PAGES = [
    "/admin/",
    "/admin/memory/resource/",
    "/admin/memory/thread/",
    "/admin/memory/message/",
    "/admin/memory/memoryrecord/",
    "/admin/memory/line/",
    "/admin/memory/revision/",
    "/admin/memory/cycle/",
    "/admin/agents/auditentry/",
    "/admin/memory/resource/import/",
]


@pytest.fixture(scope="module")
def administered(site):
    folder = Path(site.log.name).parent
    subprocess.run(
        [sys.executable, "-c", MAKE_ADMIN],
        cwd=ROOT,
        env={**environment(folder), "DJANGO_SETTINGS_MODULE": "omsite.settings"},
        check=True,
    )
    return site


@pytest.fixture
def office(chromium, administered):
    """Return a function that opens the site as an administrator."""
    contexts, complaints = [], []

    def enter(*, width=1440, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        watch(page, complaints)
        page.goto(f"{administered.url}/sign-in/?next=/account/tokens/")
        form = page.locator("form[aria-label='Sign in']")
        if not form.is_visible():
            page.get_by_text("Sign in with a password").click()
        page.fill("[name=username]", "root")
        page.fill("[name=password]", "root")
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/account/tokens/")
        return page

    yield enter
    for context in contexts:
        context.close()
    # What is refused is answered with 422, of which the browser complains by itself.
    assert [each for each in complaints if "status of 422" not in each] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_without_a_complaint(office, administered, scheme):
    page = office(scheme=scheme)
    for place in PAGES:
        response = page.goto(administered.url + place)
        assert response.status == 200, place
        page.wait_for_load_state()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place


def test_a_narrow_window_scrolls_no_page_sideways(office, administered):
    page = office(width=360)
    for place in ("/admin/", "/admin/memory/resource/import/"):
        page.goto(administered.url + place)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place


def open_record(page, administered):
    page.goto(f"{administered.url}/admin/memory/memoryrecord/")
    page.get_by_role("link", name="Prices", exact=True).first.click()
    page.wait_for_url("**/memoryrecord/*/change/")


def test_our_parts_keep_nobody_out(office, administered):
    page = office()
    open_record(page, administered)
    record = page.url
    for place in (
        f"{administered.url}/admin/",
        record,
        f"{record}?tab=lines",
        f"{record}?tab=revisions",
        record.replace("/change/", "/clear/"),
        f"{administered.url}/admin/memory/resource/import/",
    ):
        page.goto(place)
        ours = [each for each in violations(page) if "om-" in each]
        assert ours == [], place


def test_a_line_is_edited_and_its_successor_shown(office, administered):
    page = office()
    open_record(page, administered)
    page.get_by_role("link", name="Lines", exact=True).last.click()
    page.get_by_role("link", name="Edit").first.click()
    page.fill("[name=text]", "Oak costs 95 euros")
    page.fill("[name=reason]", "The list of June")
    page.get_by_role("button", name="Change the line").click()

    page.get_by_text("the line says it now").wait_for()
    assert page.input_value("[name=text]") == "Oak costs 95 euros"


def test_nothing_is_erased_until_it_is_typed(office, administered):
    page = office()
    page.goto(f"{administered.url}/admin/memory/thread/")
    page.get_by_role("link", name="Oak samples").first.click()
    page.get_by_role("link", name="Erase…").first.click()
    page.get_by_role("button", name="Erase for good").click()
    assert page.url.endswith("/erase/")  # The browser asks for what must be typed.

    page.fill("[name=typed]", "wrong")
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_text("Nothing was done.").wait_for()
