from .conftest import live
from .test_chat import SLOW, begin, talked

#: Too little to be observed before somebody asks for it.
FACTS = "My kitchen has nine square metres. My sister Mara lives in Porto."


def test_memory_is_worked_on_from_the_panel_and_shown_in_a_window_of_its_own(site, visit):
    page = visit(site)
    begin(page)
    talked(page, [FACTS])
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Own window").click()
    window = opened.value
    live(window)
    page.get_by_role("button", name="Observe now").click()
    page.wait_for_selector("#observations .line", timeout=SLOW)
    window.wait_for_selector("#observations .line", timeout=SLOW)
    page.locator("#entries .badge", has_text="asked for").first.wait_for(timeout=SLOW)
    window.fill("#sieve-text", "porto")
    shown = window.locator("#observations .line:visible")
    assert 0 < shown.count() < window.locator("#observations .line").count()
    window.close()
