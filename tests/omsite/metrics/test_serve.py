from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry, Gauge

from memory.telemetry import Closed
from omsite import watch
from omsite.metrics.meter import Meter
from omsite.metrics.serve import is_scraper, serve

TOKEN = "a token of some length"


@pytest.fixture
def meter(settings):
    """Measure, with a token for scrapers."""
    settings.CONFIG = settings.CONFIG.model_copy(update={"om_metrics_token": TOKEN})
    made = Meter()
    made(Closed("turn", "", "done", 1.0))
    before = watch.use(made)
    yield made
    watch.use(before)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.django_db
class TestOfTheSite:
    def test_there_is_nothing_while_nothing_is_measured(self, client):
        assert client.get("/metrics", headers=bearer(TOKEN)).status_code == 404

    def test_who_sends_the_token_gets_the_figures(self, client, meter):
        found = client.get("/metrics", headers=bearer(TOKEN))
        assert found.status_code == 200
        assert found["Content-Type"].startswith("text/plain; version=")
        assert 'omsite_turns_total{status="done"} 1.0' in found.content.decode()

    @pytest.mark.parametrize("token", ["another token", TOKEN[:-1], "", "ünlike"])
    def test_who_sends_another_gets_none(self, client, meter, token):
        found = client.get("/metrics", headers=bearer(token))
        assert found.status_code == 401
        assert found["WWW-Authenticate"].startswith("Bearer")
        assert b"omsite" not in found.content

    def test_staff_may_look(self, client, meter, ada):
        ada.is_staff = True
        ada.save()
        client.force_login(ada)
        assert b"omsite_turns_total" in client.get("/metrics").content

    def test_others_who_are_signed_in_may_not(self, client, meter, ada):
        client.force_login(ada)
        found = client.get("/metrics")
        assert (found.status_code, found.content) == (403, b"")

    def test_without_a_token_in_force_no_token_lets_anybody_in(self, client, meter, settings):
        settings.CONFIG = settings.CONFIG.model_copy(update={"om_metrics_token": ""})
        assert client.get("/metrics", headers=bearer("")).status_code == 401

    def test_the_figures_can_be_scraped_without_https(self, client, meter, settings):
        settings.SECURE_SSL_REDIRECT = True
        assert client.get("/metrics", headers=bearer(TOKEN)).status_code == 200


def test_the_scheme_must_be_the_right_one():
    assert is_scraper(f"bearer {TOKEN}", TOKEN)
    assert not is_scraper(f"Basic {TOKEN}", TOKEN)
    assert not is_scraper(TOKEN, TOKEN)
    assert not is_scraper("Bearer ", "")


@pytest.fixture
def registry():
    registry = CollectorRegistry()
    Gauge("something", "Something.", registry=registry).set(3)
    return registry


@pytest.fixture
def started():
    """Return what starts servers that end with the test."""
    servers = []

    def start(*arguments):
        server = serve(*arguments)
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}", server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def asked(address, **headers):
    try:
        with urlopen(Request(address, headers=headers)) as answer:
            return SimpleNamespace(status=answer.status, text=answer.read().decode())
    except HTTPError as error:
        return SimpleNamespace(status=error.code, text=error.read().decode())


def test_a_worker_shows_its_figures_to_who_sends_the_token(started, registry):
    address, server = started(registry, 0, TOKEN)
    found = asked(f"{address}/metrics", **bearer(TOKEN))
    assert (found.status, "something 3.0" in found.text) == (200, True)
    assert asked(f"{address}/metrics").status == 401
    assert asked(f"{address}/", **bearer(TOKEN)).status == 404
    assert server.server_address[0] == "0.0.0.0"


def test_without_a_token_a_worker_shows_them_to_its_own_machine_only(started, registry):
    address, server = started(registry, 0, "")
    assert asked(f"{address}/metrics").status == 200
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_ends_no_worker(started, registry, caplog):
    _, server = started(registry, 0, "")
    assert serve(registry, server.server_address[1], "") is None
    assert "not shown on port" in caplog.text
