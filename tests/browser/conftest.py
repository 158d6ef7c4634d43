import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
START_SECONDS = 60


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def environment(folder, **more):
    return {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
        "REDIS_URL": "",
        "MEDIA_ROOT": str(folder / "media"),
        "SECRET_KEY": "only for tests",
        "PYTHONPATH": str(ROOT),
        **more,
    }


def fill(folder, *program, **more):
    """Make a world in a database of its own with a program; return the last line it writes."""
    made = subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env=environment(folder, **more),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return made.stdout.strip().rpartition("\n")[2]


class Site:
    """Run a server of its own with a database of its own."""

    def __init__(self, folder, *program, **more):
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.log = (folder / "server.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, *program, str(self.port)],
            cwd=ROOT,
            env=environment(folder, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def wait(self):
        """Return once pages are served."""
        began = monotonic()
        while monotonic() - began < START_SECONDS and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=1):
                    return self
            except (urllib.error.URLError, OSError):
                continue
        self.log.seek(0)
        raise RuntimeError(f"The server did not start:\n{self.log.read()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.log.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Serve a small world as ``make studio`` does."""
    folder = tmp_path_factory.mktemp("site")
    fill(folder, "tests/browser/world.py")
    site = Site(folder, "manage.py", "serve", "--port", OM_OFFLINE_DELAY="1").wait()
    yield site
    site.stop()


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Return a function that opens a site as Ada, at her newest conversation if she has one.

    Whatever the browser complains of fails, but for texts a test ``expects``.
    """
    contexts, complaints = [], []

    def open_page(site, *, width=1440, height=820, scheme="light", expects=()):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        watch(page, complaints, expects)
        page.goto(f"{site.url}/sign-in/")
        page.get_by_role("button", name="Continue as Ada").click()
        page.wait_for_url(lambda url: "/sign-in/" not in url)
        live(page)
        newest = page.locator("#recent a.thread-link").first
        page.goto(site.url + (newest.get_attribute("href") if newest.count() else "/chat/"))
        live(page)
        return page

    yield open_page
    heard = list(complaints)  # closing a tab while its socket opens is a complaint of its own
    for context in contexts:
        context.close()
    assert heard == []


def live(page):
    """Wait for the socket of a page that has one: the browser complains when one leaves earlier."""
    without = "#connection[hidden], body:not(:has(#connection))"
    page.wait_for_selector(f"#connection[data-state=live], {without}", state="attached")


def watch(page, complaints, expects=()):
    """Note what the browser complains of: script errors and everything the policy forbids."""
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type in ("error", "warning")
            and not any(each in message.text for each in expects)
            else None
        ),
    )
