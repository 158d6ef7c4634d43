"""What people are told when a provider fails over real HTTP, and that “Try again” works."""

import pytest

from tests.crash.database import Sqlite
from tests.fleet.private import until
from tests.fleet.site import site
from tests.wire.dialects import KEY, OpenAIChat
from tests.wire.server import Cut, Hang, Refuse, Say, Wire, serve

pytestmark = pytest.mark.slow

ANSWER = Say(("It is ", "all well ", "now."))
LONG = Say(tuple(f"piece {number} " for number in range(40)))
FAILURES = [
    (Refuse(401), "refused the key", ""),
    (Refuse(429), "limits how often", ""),
    (Refuse(500), "failed (HTTP 500", ""),
    (Hang(), "took too long", ""),
    (Cut(LONG), "broke off during its answer", "piece 3"),
]


@pytest.fixture(scope="module")
def wire():
    with serve(Wire(OpenAIChat(), [])) as opened:
        yield opened


@pytest.fixture(scope="module")
def world(wire, tmp_path_factory):
    database = Sqlite(tmp_path_factory.mktemp("site") / "site.sqlite3")
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), "")
    named = {
        **proxies,
        **wire.dialect.environment(wire.address),
        wire.dialect.key_variable: KEY,
        "OM_MODEL": f"{wire.dialect.name}:{wire.dialect.model}",
        "OM_OBSERVER_MODEL": "offline",
        "OM_REFLECTOR_MODEL": "offline",
        "OM_MODEL_TRIES": "1",
        "OM_MODEL_SILENCE": "2",
    }
    with site(database.url, **named) as running:
        people = running.prepare("--threads", str(len(FAILURES)), "--resources", "1")
        web = running.web()
        running.ready(web)
        yield database, web, people[0]


@pytest.mark.parametrize(
    ("failure", "says", "kept"), FAILURES, ids=["401", "429", "500", "hangs", "cut"]
)
def test_the_turn_says_what_happened_keeps_what_was_said_and_can_be_tried_again(
    world, wire, failure, says, kept
):
    database, web, person = world
    thread = person.threads[[each[1] for each in FAILURES].index(says)]

    def turns():
        found = f"SELECT status FROM agents_turn WHERE thread_id = '{thread.replace('-', '')}'"
        return [status for (status,) in database.rows(f"{found} ORDER BY number")]

    wire.script[:] = [failure, ANSWER]
    assert person.send(web.url, thread, "How is it?").status == 204
    until(lambda: turns() == ["failed"], "the turn says that it failed")
    page = person.page(web.url, thread).text
    assert says in page
    assert kept in page
    assert KEY not in page

    assert person.retry(web.url, thread, 1).status == 204
    until(lambda: turns() == ["failed", "done"], "it is answered")
    assert ANSWER.text in person.regions(web.url, thread, only="entries").text
    assert len(wire.script) == 0
