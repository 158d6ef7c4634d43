import pytest

from .shots import shot
from .test_chat import SLOW, begin, say
from .world import picture

PHOTO = {"name": "kitchen.png", "mimeType": "image/png", "buffer": picture()}
NOTES = {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Oak"}
BROKEN = {"name": "scan.pdf", "mimeType": "application/pdf", "buffer": b"\x00\x01\x02"}
DROP = """files => {
  const data = new DataTransfer();
  for (const name of files) data.items.add(new File(["dropped"], name, { type: "text/plain" }));
  const rest = { dataTransfer: data, bubbles: true, cancelable: true };
  const event = (kind) => new DragEvent(kind, rest);
  const log = document.querySelector("#log");
  log.dispatchEvent(event("dragenter"));
  log.dispatchEvent(event("drop"));
}"""
PASTE = """() => {
  const data = new DataTransfer();
  data.items.add(new File(["pasted"], "pasted.txt", { type: "text/plain" }));
  const rest = { clipboardData: data, bubbles: true, cancelable: true };
  const event = new ClipboardEvent("paste", rest);
  document.querySelector("#message").dispatchEvent(event);
}"""


def attached(page, count):
    page.wait_for_function(
        "n => document.querySelectorAll('#files li:not([aria-busy])').length === n",
        arg=count,
        timeout=SLOW,
    )
    return [text.split("\n")[0] for text in page.locator("#files b").all_inner_texts()]


def test_files_are_chosen_dropped_and_pasted_shown_and_sent(site, visit):
    page = visit(site, width=1200)
    begin(page)
    page.fill("#message", "Here are the plans.")
    page.set_input_files("#picker", [PHOTO, NOTES])
    assert attached(page, 2) == ["kitchen.png", "notes.md"]
    page.wait_for_selector("#files canvas", timeout=SLOW)
    page.evaluate(DROP, ["dropped.txt"])
    page.evaluate(PASTE)
    assert attached(page, 4) == ["kitchen.png", "notes.md", "dropped.txt", "pasted.txt"]
    page.get_by_role("button", name="Remove notes.md").press("Enter")
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-label')") == "Remove dropped.txt"
    )
    for width, height in ((1200, 820), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            shot(page, f"attach-{width}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.reload()
    assert attached(page, 3) == ["kitchen.png", "dropped.txt", "pasted.txt"]
    assert page.input_value("#message") == "Here are the plans."
    page.press("#message", "Enter")
    page.wait_for_selector("#entries article[data-by=user]", timeout=SLOW)
    assert attached(page, 0) == []
    assert page.locator("#outbox li").count() == 0


def test_a_file_that_is_refused_says_why_and_nothing_typed_is_lost(site, chromium):
    # Not through the fixture: the browser itself complains of an answer of 422.
    context = chromium.new_context(viewport={"width": 1200, "height": 820})
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/?next=/chat/")
    page.get_by_role("button", name="Continue as Ada").click()
    begin(page)
    page.fill("#message", "Look at this.")
    page.set_input_files("#picker", [BROKEN])
    page.locator("#files .bad").wait_for(timeout=SLOW)
    assert "is of a kind that cannot be attached" in page.locator("#files").inner_text()
    page.press("#message", "Enter")
    assert "Remove it or try again" in page.locator("#refusal").inner_text()
    assert page.input_value("#message") == "Look at this."
    shot(page, "attach-refused")
    page.get_by_role("button", name="Remove scan.pdf").click()
    assert page.locator("#refusal").is_hidden()
    say(page, "Look at this.")
    page.wait_for_selector("#entries article[data-by=user]", timeout=SLOW)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_log_shows_pictures_files_and_the_gap_before_them(site, visit, scheme):
    page = visit(site, width=360, height=740, scheme=scheme)
    page.goto(f"{site.url}/chat/")
    page.get_by_role("link", name="Oak samples").click()
    picture = page.get_by_role("img", name="oak.png")
    picture.wait_for(timeout=SLOW)
    page.wait_for_function("() => document.querySelector('.picture img').naturalWidth === 40")
    assert page.get_by_role("link", name="offer.md").is_visible()
    assert "3 hours later" in page.locator(".gap").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    shot(page, f"log-files-{scheme}")
