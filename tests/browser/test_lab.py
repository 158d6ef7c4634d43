import os

import pytest

from .conftest import Site, fill, live
from .shots import shoot

SLOW = 60_000


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Serve a world in which Ada is an operator."""
    folder = tmp_path_factory.mktemp("lab")
    fill(folder, "-m", "tests.browser.test_lab")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="0.3").wait()
    yield site
    site.stop()


def open_preset(page, site, button):
    page.goto(f"{site.url}/lab/")
    live(page)
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/lab/*-*/")
    live(page)


def test_a_scenario_runs_before_ones_eyes_and_every_check_passes(bench, visit):
    page = visit(bench)
    page.goto(f"{bench.url}/lab/")
    live(page)
    shoot(page, "lab-list-empty")
    open_preset(page, bench, "Open and run Two users of one team, one outside")
    shoot(page, "lab-busy")
    page.wait_for_selector("#controls:has-text('checks passed')", timeout=SLOW)
    assert "failed" not in page.inner_text("#controls")
    page.wait_for_selector("#matrix:has-text('shared as intended')")
    assert page.locator("#matrix .badge", has_text="leak").count() == 0
    page.wait_for_selector("#strips .line:has-text('Ruth Okafor')")
    shoot(page, "lab-done")


def test_what_one_pane_says_the_matrix_finds_in_the_others(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open Two users of one team, one outside")
    page.locator("#pane-b-text").fill("half a sentence")
    page.keyboard.press("Control+1")
    assert page.evaluate("document.activeElement.id") == "pane-a-text"
    page.keyboard.type("The plumber is Ruth Okafor.")
    page.keyboard.press("Enter")
    page.wait_for_selector("#pane-a-log .mini-said[data-by=assistant]", timeout=SLOW)
    page.wait_for_selector("#matrix tr:has-text('Ruth Okafor') :text('isolated')", timeout=SLOW)
    assert page.locator("#matrix tr", has_text="Ruth Okafor").inner_text().count("shared") == 1
    page.wait_for_function("() => document.querySelector('#pane-a-text').value === ''")
    assert page.input_value("#pane-b-text") == "half a sentence"
    page.get_by_role("button", name="Observe A now").click()
    page.wait_for_selector("#strips .line", timeout=SLOW)

    page.get_by_label("Message to all panes").fill("Remember the blue door.")
    page.get_by_label("at the same instant").check()
    page.get_by_role("button", name="Broadcast").click()
    page.wait_for_selector("#runlog :text('at the same instant')", timeout=SLOW)
    for letter in "abc":
        page.wait_for_selector(f"#pane-{letter}-log :text('blue door')", timeout=SLOW)


def test_a_leak_is_shown_in_words(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open Edits and notes stay in their team")
    page.locator("#scenario summary").click()
    field = page.locator("#scenario textarea")
    text = field.input_value()
    # The code is told to Cleo as well: a fact that is declared to be A's is a leak there.
    field.fill(text.replace("steps:", 'steps:\n  - note: {pane: C, text: "The code is 4711."}'))
    page.get_by_role("button", name="Run these steps").click()
    page.wait_for_selector("#matrix .notice.bad:has-text('1 leak: “4711” in C.')", timeout=SLOW)
    page.wait_for_selector("#runlog [data-state=failed]", timeout=SLOW)
    page.wait_for_selector("#controls:not([data-running])", timeout=SLOW)
    page.locator("#matrix summary").first.click()
    shoot(page, "lab-leak")


def test_a_leak_is_planted_to_see_that_it_is_found(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open Two users of one team, one outside")
    page.locator("#pane-a-text").fill("The plumber is Ruth Okafor.")
    page.keyboard.press("Enter")
    plant = page.get_by_role("button", name="Plant a leak of Ruth Okafor in C")
    plant.wait_for(timeout=SLOW)
    page.locator("#pane-b-trials summary").click()
    shoot(page, "lab-plant")
    plant.click()
    page.wait_for_selector("#matrix .notice:has-text('1 leak: “Ruth Okafor” in C.')", timeout=SLOW)
    page.get_by_role("button", name="Look for bleed into pane B").click()
    page.wait_for_selector("#runlog :text('bleed')", timeout=SLOW)


def test_a_wrong_scenario_is_told_by_its_lines_where_it_was_written(bench, chromium):
    """With a page of its own: a browser complains of every answer 422."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{bench.url}/sign-in/")
    page.get_by_role("button", name="Continue as Ada").click()
    open_preset(page, bench, "Open Edits and notes stay in their team")
    page.locator("#scenario summary").click()
    field = page.locator("#scenario textarea")
    field.fill(field.input_value().replace("steps:", "steps:\n  - explode: A"))
    page.get_by_role("button", name="Run these steps").click()
    page.wait_for_selector("#scenario-problems [role=alert]:has-text('write one of say')")
    assert "Line 13:" in page.inner_text("#scenario-problems")
    assert "explode" in field.input_value()
    context.close()


def test_a_lab_is_wiped_in_one_click_with_its_people(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open One user, two conversations, one memory")
    page.get_by_role("button", name="Wipe…").click()
    page.get_by_role("button", name="Wipe", exact=True).click()
    page.wait_for_url("**/lab/")
    live(page)
    assert "was wiped" in page.inner_text("#studio")


def test_narrow_panes_become_tabs(bench, visit):
    page = visit(bench, width=360, height=740)
    open_preset(page, bench, "Open Two users of one team, one outside")
    assert page.locator(".pane:visible").count() == 1
    page.locator(".pane-tabs label", has_text="Cleo").click()
    assert page.locator("#pane-c").is_visible()
    assert not page.locator("#pane-a").is_visible()


def test_parts_of_a_pane_are_made_to_fail_and_the_pane_says_so(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open Two users of one team, one outside")
    trials = page.locator("#pane-a-trials")
    trials.locator("summary").click()
    trials.get_by_label("Observer").select_option("fails")
    trials.get_by_role("button", name="Switch in pane A").click()
    page.wait_for_selector("#pane-a-trials .badge:text-is('observer fails')", timeout=SLOW)
    assert trials.get_attribute("open") is not None
    trials.get_by_label("Filler").fill("6")
    trials.get_by_role("button", name="Fill pane A").click()
    page.wait_for_selector("#pane-a-log .mini-said:has-text('Filler 6')", timeout=SLOW)
    page.get_by_role("button", name="Observe A now").click()
    page.wait_for_selector("#runlog .badge[data-state=failed]", timeout=SLOW)
    shoot(page, "lab-trials")


def test_a_line_is_edited_twice_at_once_and_the_memory_checked(bench, visit):
    page = visit(bench)
    open_preset(page, bench, "Open and run Everything at the same instant")
    for words in ("came first; the other was refused", "every message in order"):
        page.locator("#runlog", has_text=words).wait_for(timeout=SLOW)
    assert page.locator("#runlog .badge[data-state=failed]").count() == 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from tests.browser.world import make

    make()
    get_user_model().objects.update(is_superuser=True)
