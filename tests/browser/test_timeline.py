import os

import pytest

from .conftest import Site, fill, live
from .shots import shoot, shot

CURVES = 400  # They are drawn anew, which takes longer than a change of colours.

SLOW = 60_000


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Serve a world with a conversation that has a past, and an empty one."""
    folder = tmp_path_factory.mktemp("timeline")
    fill(folder, "-m", "tests.browser.test_timeline", OM_OFFLINE_DELAY="0.05")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="3").wait()
    yield site
    site.stop()


def open_timeline(page, site, title, query=""):
    page.goto(f"{site.url}/chat/")
    page.get_by_role("link", name=title, exact=True).first.click()
    page.wait_for_url("**/chat/*-*/")
    live(page)
    thread = page.url.rstrip("/").rsplit("/", 1)[1]
    page.goto(f"{site.url}/timeline/{thread}/{query}")
    live(page)
    return thread


def test_a_history_is_drawn_and_told_and_every_revision_can_be_gone_back_to(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen")
    assert page.locator(".plot canvas").count() == 2
    assert page.locator("#curves .sentence", has_text="came down").count() == 2
    assert page.locator("#events tr[data-kind=reflect]").count()
    shoot(page, "timeline", settles=CURVES)

    slider = page.get_by_role("slider")
    assert slider.get_attribute("aria-valuetext") == "now"
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#travel[data-past]")
    assert "at=" in page.url
    assert "revision" in slider.get_attribute("aria-valuetext")
    latest = page.inner_text("#where")
    page.locator("h1").click()
    page.keyboard.press("[")
    page.wait_for_function(
        "(was) => document.querySelector('#where').innerText !== was", arg=latest
    )
    assert page.locator("#events tr[aria-current]").count() == 1
    shoot(page, "timeline-past", settles=CURVES)

    page.get_by_role("link", name="First revision").click()
    page.wait_for_selector("#travel:has-text('Nothing was visible yet.')")
    page.locator("#to-now").click()
    page.wait_for_selector("#travel:not([data-past])")
    assert "at=" not in page.url


def test_playing_steps_through_the_revisions_up_to_now(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen", "?at=0")
    page.get_by_label("Speed").select_option("8")
    page.get_by_role("button", name="Play").click()
    page.wait_for_selector("#travel:not([data-past])", timeout=SLOW)
    assert page.locator("#play").get_attribute("aria-pressed") == "false"


def test_a_window_dragged_over_a_curve_becomes_the_window_of_all(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen")
    before = page.locator("#events .caption").first.inner_text()
    box = page.locator("#plot-messages .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40, steps=5)
    page.mouse.up()
    page.wait_for_url("**since=**")
    live(page)
    assert page.locator("#events .caption").first.inner_text() != before
    page.get_by_role("link", name="Show all").first.click()
    live(page)
    assert page.locator("#events .caption").first.inner_text() == before


def wheel(page, by):
    page.locator("#plot-messages .u-over").hover()
    page.keyboard.down("Control")
    with page.expect_navigation():
        for _ in range(3):
            page.mouse.wheel(0, by)
    page.keyboard.up("Control")
    page.wait_for_selector("#plot-messages .u-over")
    live(page)


def test_ctrl_and_the_wheel_narrow_the_window_and_widen_it_to_all_again(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen")
    before = page.locator("#events .caption").first.inner_text()
    wheel(page, -100)
    assert "since=" in page.url
    assert page.locator("#events .caption").first.inner_text() != before
    for _ in range(6):
        if "since=" in page.url or "until=" in page.url:
            wheel(page, 100)
    assert "since=" not in page.url
    assert page.locator("#events .caption").first.inner_text() == before


def went(page, key, was):
    page.keyboard.press(key)
    page.wait_for_function("(was) => location.search !== was", arg=was)
    live(page)
    return page.evaluate("location.search")


def test_a_keyboard_goes_from_event_to_event_and_narrows_and_widens_the_window(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen")
    page.locator("#lanes").focus()
    last = went(page, "ArrowLeft", "")
    before = went(page, "Shift+ArrowLeft", last)
    went(page, "Home", before)
    page.wait_for_selector("#travel[data-past]")
    assert page.evaluate("document.activeElement.id") == "lanes"
    shot(page, "timeline-keyboard")
    now = went(page, "End", page.evaluate("location.search"))
    assert now == ""
    page.wait_for_selector("#travel:not([data-past])")
    narrow = went(page, "+", now)
    assert page.evaluate("document.activeElement.id") == "lanes"
    shoot(page, "timeline-narrow", settles=CURVES)
    moved = went(page, "<" if "since" in narrow else ">", narrow)
    assert went(page, "0", moved) == ""
    page.get_by_role("spinbutton", name="Revision").fill("1")
    page.wait_for_selector("#where:has-text('As of revision 1')")
    page.get_by_role("spinbutton", name="Revision").press("ArrowUp")
    page.wait_for_selector("#where:has-text('As of revision 2')")


def test_the_filters_stand_in_two_rows_on_a_small_screen(history, visit):
    page = visit(history, width=1280)
    open_timeline(page, history, "The kitchen")
    tops = {
        round(field.bounding_box()["y"] + field.bounding_box()["height"])
        for field in page.locator("#filters > *:visible").all()
    }
    shot(page, "timeline-1280")
    assert len(tops) <= 2


def test_what_happens_now_appears_by_itself(history, visit):
    page = visit(history)
    thread = open_timeline(page, history, "Nothing yet")
    assert "Nothing has happened here yet" in page.inner_text("#events")
    shoot(page, "timeline-empty", settles=CURVES)
    chat = page.context.new_page()
    chat.goto(f"{history.url}/chat/{thread}/")
    live(chat)
    chat.locator("#message").fill("My plumber is Ruth Okafor and she comes on Tuesday.")
    chat.keyboard.press("Enter")
    page.wait_for_selector("#events tr[data-kind=turn]", timeout=SLOW)
    page.wait_for_selector("#lanes [data-open-end]", timeout=SLOW)
    shoot(page, "timeline-busy", settles=CURVES)
    page.wait_for_selector("#events tr:has-text('Answered')", timeout=SLOW)


def test_what_failed_is_shown_alone(history, visit):
    page = visit(history)
    open_timeline(page, history, "The kitchen", "?failed=1")
    assert page.locator("#events .badge", has_text="Not answered").count() == 1
    shoot(page, "timeline-failed", settles=CURVES)


def test_without_a_script_the_timeline_is_there(history, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{history.url}/sign-in/?next=/timeline/")
    page.get_by_role("button", name="Continue as Ada").click()
    page.goto(f"{history.url}/timeline/")
    assert page.locator("#curves svg polyline").count() == 2
    assert page.locator("#events, #travel").count() == 2
    assert not page.locator("#step").is_visible()
    page.goto(f"{history.url}/chat/")
    page.get_by_role("link", name="The kitchen", exact=True).first.click()
    page.goto(page.url.replace("/chat/", "/timeline/"))
    page.get_by_role("spinbutton", name="Revision").fill("2")
    page.get_by_role("button", name="Go to the revision").click()
    assert "As of revision 2" in page.inner_text("#where")
    page.get_by_role("link", name="Narrower").click()
    assert "As of revision 2" in page.inner_text("#where")
    assert "since=" in page.url or "until=" in page.url
    context.close()


def past():
    """Give Ada a conversation with turns, observations, an edit, a reflection and a failure."""
    from asgiref.sync import async_to_sync
    from django.contrib.auth import get_user_model

    from agents.demo.world import _recording
    from agents.models import Turn
    from agents.services.replay import Source, begin, replay
    from agents.services.thread import start
    from memory.models import Line
    from memory.services import operate
    from memory.services.edit import edit
    from memory.services.look import look
    from memory.services.note import note
    from tests.browser.world import make

    resource, profile = make()
    ada = get_user_model().objects.get(username="ada")
    options = {"message_tokens": 2_000, "observation_tokens": 1_200}
    source = Source("kitchen", "0")
    thread = begin(source, resource=resource, profile=profile, title="The kitchen", options=options)
    async_to_sync(replay)(thread.pk, _recording())
    record = look(thread.pk).record
    line = Line.objects.as_of(record.pk, record.revision).in_order().first()
    edit(line.pk, "The budget is nine thousand euros", author=ada, reason="It rose.")
    note(record.pk, "Ask for oak samples", author=ada, thread_id=thread.pk)
    async_to_sync(operate.reflect_now)(thread.pk)
    last = Turn.objects.filter(thread=thread).order_by("number").last()
    Turn.objects.filter(pk=last.pk).update(status="failed", error="The model was overloaded.")
    start(resource, profile, title="Nothing yet")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    past()
