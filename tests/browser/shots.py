"""Take pictures of pages, and look at them as an auditor does."""

from pathlib import Path

from .axe import violations

SHOTS = Path(__file__).parent / "shots"


def shot(page, name):
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


def shoot(page, name, *, settles=200):
    """Look at the page light and dark, wide and narrow: nothing wrong, nothing too wide.

    Colours change over a moment, so many milliseconds.
    """
    SHOTS.mkdir(exist_ok=True)
    for width, height in ((1440, 900), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(settles)
            page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
            found = violations(page)
            assert found == [], f"{name} {width} {scheme}: {found}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
