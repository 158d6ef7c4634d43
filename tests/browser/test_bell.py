"""The bell counts what is new, tells of it beside any page, and is silent once it was seen."""

import os

import pytest

from .conftest import Site, fill, live
from .shots import shoot
from .test_chat import say

SLOW = 60_000


@pytest.fixture(scope="module")
def ringing(tmp_path_factory):
    """Serve a world with an agent whose answers fail, and a line that somebody else changed."""
    folder = tmp_path_factory.mktemp("bell")
    fill(folder, "-m", "tests.browser.test_bell")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="0.1").wait()
    yield site
    site.stop()


def test_the_bell_rings_by_itself_opens_beside_the_page_and_is_silent_once_seen(ringing, visit):
    page = visit(ringing)
    assert page.locator("#bell b").count() == 0  # All of it was before Ada signed in.
    say(page, "Oak or laminate?")
    page.wait_for_selector("#bell b:has-text('1')", timeout=SLOW)
    page.get_by_role("link", name="1 new notice").click()
    page.wait_for_selector("#drawer h2:has-text('Notices')")
    assert "✕ Answer failed" in page.inner_text("#drawer li:has(.fresh)")
    assert page.locator("#drawer li").count() == 2
    shoot(page, "bell-drawer")
    page.locator("#drawer").get_by_role("button", name="Mark 1 as seen").click()
    page.wait_for_selector("#bell:not(:has(b))", timeout=SLOW)
    page.goto(f"{ringing.url}/bell/")
    live(page)
    assert page.locator("#notices .fresh").count() == 0
    assert "✎ Line edited by ben" in page.inner_text("#notices")
    shoot(page, "bell")


def test_without_a_script_the_bell_is_a_page_with_a_button(ringing, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{ringing.url}/sign-in/?next=/bell/")
    page.get_by_role("button", name="Continue as Ada").click()
    page.get_by_role("link", name="Notices").click()
    page.wait_for_url("**/bell/")
    page.get_by_role("heading", name="Notices").wait_for()
    assert page.locator("#notices li").count() >= 1
    context.close()


def past():
    """Let Ben change a line of a conversation of Ada's whose agent cannot answer."""
    from django.contrib.auth import get_user_model

    from agents.models import AgentProfile
    from agents.services.thread import start
    from memory.models import MemoryRecord
    from memory.services.edit import edit
    from memory.services.note import note
    from tests.browser.world import make

    resource, _ = make()
    people = get_user_model().objects
    ada = people.get(username="ada")
    ben = people.filter(username="ben").first() or people.create_user("ben")
    mute = AgentProfile.objects.create(slug="mute", name="Mute", model="offline:fails")
    thread = start(resource, mute, title="The kitchen")
    record = MemoryRecord.objects.create(thread=thread, resource=resource)
    line = note(record.pk, "Oak costs eighty euros", author=ada)
    edit(line.pk, "Oak costs ninety euros", author=ben, reason="It rose in May.")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    past()
