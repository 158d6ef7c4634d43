"""The API in a browser and with curl: its pages, and a walk-through that works as written."""

import os
import re
import shutil
import subprocess

import pytest

from .axe import violations
from .conftest import ROOT, live
from .shots import shoot

DOCS = ROOT / "docs" / "studio" / "api.md"


def go(page, url):
    page.goto(url)
    live(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["/api/docs", "/account/tokens/"])
def test_pages_keep_nobody_out(visit, site, scheme, place):
    page = visit(site, scheme=scheme)
    go(page, site.url + place)

    assert violations(page) == []


@pytest.mark.parametrize("width", [360, 2560])
@pytest.mark.parametrize("place", ["/api/docs", "/account/tokens/"])
def test_pages_fit_every_window(visit, site, width, place):
    page = visit(site, width=width)
    make_token(page, site, f"Of {width} px with a name that is rather long")
    go(page, site.url + place)

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def make_token(page, site, name):
    go(page, f"{site.url}/account/tokens/")
    page.fill("[name=name]", name)
    page.get_by_role("button", name="Make token").click()
    secret = page.locator("#secret").inner_text()
    live(page)
    return secret


def test_a_token_is_made_shown_once_and_revoked(visit, site):
    page = visit(site)
    secret = make_token(page, site, "Backup script")
    assert secret.startswith("om_")

    go(page, f"{site.url}/account/tokens/")
    assert secret not in page.content()
    row = page.get_by_role("row").filter(has_text="Backup script")
    row.get_by_role("button", name="Revoke").click()
    page.locator("dialog[open]").get_by_role("button", name="Revoke", exact=True).click()
    page.get_by_text("nobody gets in with it any more").wait_for()
    live(page)
    assert "revoked" in row.inner_text()


def test_a_call_is_opened_from_the_index(visit, site):
    page = visit(site)
    go(page, f"{site.url}/api/docs")
    page.get_by_role("link", name="Send a message").click()
    article = page.locator("#messages_send")
    article.get_by_text("Call it").click()

    assert f"{site.url}/api/v1/threads/" in article.locator("pre").inner_text()


def walk(text):
    """Return the commands of a document, in order, and what each must answer."""
    return re.findall(r"```sh\n(.*?)```(?:\n\n```(?:json|text)\n(.*?)```)?", text, re.S)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_walk_through_works_as_it_is_written(visit, site, tmp_path):
    """Every command of docs/studio/api.md is run; what it answers holds what is shown."""
    page = visit(site)
    secret = make_token(page, site, "Walk-through")
    script = ["set -e"]
    steps = walk(DOCS.read_text())
    assert len(steps) >= 8
    for number, (command, _) in enumerate(steps):
        script += [f"{{\n{command.rstrip()}\n}} > {tmp_path}/{number}.out"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        env={**os.environ, "STUDIO": site.url, "TOKEN": secret},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for number, (command, shown) in enumerate(steps):
        answer = (tmp_path / f"{number}.out").read_text()
        for line in filter(None, shown.splitlines()):
            wanted = line.strip().rstrip(",")
            if wanted not in ("{", "}", "…"):
                assert wanted in answer, f"{command}\nshould answer {wanted!r}:\n{answer[:2000]}"


def test_what_a_page_shows_can_be_asked_for_by_a_script(site, visit):
    page = visit(site)
    page.goto(f"{site.url}/")
    live(page)
    page.locator("summary", has_text="ada").click()
    page.get_by_role("button", name="This view as API").click()
    assert "/api/v1/threads" in page.inner_text("#as-api")
    shoot(page, "as-api")
