"""What a person sees who sends more than they may: nothing they typed is lost."""

import subprocess
import sys

import pytest

from .conftest import ROOT, Site, environment
from .test_chat import begin, say

ONE_A_MINUTE = {"OM_OFFLINE_DELAY": "0.2", "OM_SENDS_PER_MINUTE": "1"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Serve a world in which one message may be sent in a minute."""
    folder = tmp_path_factory.mktemp("strict")
    subprocess.run(
        [sys.executable, "tests/browser/world.py"], cwd=ROOT, env=environment(folder), check=True
    )
    site = Site(folder, "manage.py", "serve", "--port", **ONE_A_MINUTE).wait()
    yield site
    site.stop()


def test_a_refused_message_goes_back_or_waits_above_what_was_written_since(strict, visit):
    page = visit(strict)
    begin(page)
    say(page, "The first.")
    page.wait_for_selector("#entries [data-by=user], #queue li")
    say(page, "The second.")
    page.wait_for_selector("#refusal:not([hidden])")
    assert "You sent 1 message within a minute" in page.inner_text("#refusal")
    assert page.input_value("#message") == "The second."
    assert page.locator("#outbox li").count() == 0

    page.evaluate(
        """() => {
          const field = document.querySelector("#message");
          document.querySelector("#composer").requestSubmit();
          field.value = "Already writing";
          field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    page.wait_for_selector("#outbox [data-again]")
    assert "The second. Not sent" in " ".join(page.inner_text("#outbox").split())
    assert page.input_value("#message") == "Already writing"

    page.reload()
    page.wait_for_selector("#outbox [data-again]")
    assert page.input_value("#message") == "Already writing"
    page.get_by_role("button", name="Remove").click()
    assert page.locator("#outbox li").count() == 0
