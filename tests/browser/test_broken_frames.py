import json
import re
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from random import Random
from time import monotonic

import pytest

from .conftest import Site, live
from .test_chat import CLOCKLESS, SLOW

SEQUENCES = range(1000, 1020)
AT_ONCE = 5
STEPS = 25


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Serve conversations that are played on command."""
    site = Site(tmp_path_factory.mktemp("stage"), "-m", "tests.browser.stage").wait()
    yield site
    # It also waits for commands that never come; how a server ends is tested with real ones.
    site.process.kill()
    site.stop()


def told(site, page, command):
    """Return the stage's answer, while frames go on reaching the page."""

    def ask():
        site.process.stdin.write(command + "\n")
        site.process.stdin.flush()
        return site.process.stdout.readline().strip()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        while not answer.done():
            page.wait_for_timeout(20)
        return answer.result()


class BadLine:
    """Drop, double and reorder what a server sends its page."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.late = []
        self.broken = 0

    def __call__(self, socket):
        server = socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(lambda text: self.pass_on(socket, text))

    def pass_on(self, socket, text):
        if json.loads(text)["type"] != "render":
            socket.send(text)
            return
        fate = self.random.random()
        self.broken += fate < 0.6
        if fate < 0.2:
            return
        if fate < 0.4:
            self.late.append(text)
        else:
            socket.send(text)
        if fate > 0.8:
            socket.send(text)
        if self.late and self.random.random() < 0.4:
            socket.send(self.late.pop())


def difference(fresh, page, part):
    """Return the lines in which a part still differs after all the time there is."""
    until = monotonic() + 3 * SLOW / 1000
    while True:
        shown = [each.evaluate(CLOCKLESS, part).replace(">", ">\n") for each in (fresh, page)]
        if shown[0] == shown[1] or monotonic() > until:
            return list(unified_diff(*(each.splitlines() for each in shown), n=1, lineterm=""))
        page.wait_for_timeout(250)


@pytest.mark.parametrize("first", list(SEQUENCES)[::AT_ONCE])
def test_pages_on_bad_lines_end_equal_to_fresh_ones(stage, visit, first):
    home = visit(stage)
    open_pages = []
    for seed in range(first, first + AT_ONCE):
        thread = told(stage, home, f"new {seed}")
        page, line = home.context.new_page(), BadLine(seed)
        page.route_web_socket(re.compile("/ws/chat/"), line)
        page.goto(f"{stage.url}/chat/{thread}/")
        live(page)
        open_pages.append((thread, page, line))

    for thread, page, _ in open_pages:
        told(stage, page, f"play {thread} {STEPS}")

    for thread, page, line in open_pages:
        assert line.broken > 0
        home.goto(f"{stage.url}/chat/{thread}/")
        live(home)
        for part in ("#log", "#panel"):
            assert difference(home, page, part) == []
