"""Take the pictures of docs/screenshots from a fresh demo world: make screenshots."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS, ROOT, Site, live

FOLDER = ROOT / "docs" / "screenshots"
SIZES = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 390, "height": 844}}
SHOWN = (("wide", "light"), ("wide", "dark"), ("narrow", "light"))
PLACES = ("memory", "context", "timeline", "settings")


def take(browser, site, width, scheme):
    """Write a picture of each page as somebody sees it who signs in as Ada."""
    context = browser.new_context(viewport=SIZES[width], color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/")
    page.get_by_role("button", name="Continue as Ada").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    live(page)
    newest = page.locator("#recent a.thread-link").first.get_attribute("href")
    thread = newest.strip("/").split("/")[1]
    addresses = {"home": "/", "chat": newest, **{each: f"/{each}/{thread}/" for each in PLACES}}
    for name, address in addresses.items():
        page.goto(site.url + address)
        live(page)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=FOLDER / f"{name}-{width}-{scheme}.png")
    context.close()


def main():
    """Serve a demo world of its own, and take every picture."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Site(Path(folder), "manage.py", "studio", "--port").wait()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for width, scheme in SHOWN:
            take(browser, site, width, scheme)
        browser.close()
        site.stop()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
