"""Hold the containers against the one list of processes."""

import re
from pathlib import Path

import pytest
import yaml

from omsite.config import Config
from omsite.management.commands.production import TEMPLATE, _Braced, commands, metrics_ports
from omsite.processes import PROCESSES, WEB

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_each_process_is_a_service_with_the_same_command(process):
    wanted = process.command.format(host="0.0.0.0", port=8000, folder="/run/omsite")
    assert SERVICES[process.name]["command"].split() == wanted.split()
    assert SERVICES[process.name].get("deploy", {}).get("replicas", 1) == process.count


def test_there_is_no_service_besides_but_the_servers():
    ours = {process.name for process in PROCESSES}
    assert set(SERVICES) == ours | {"proxy", "postgres", "redis"}


def test_every_variable_is_one_of_ours_or_a_providers_key():
    known = {name.upper() for name in Config.model_fields}
    given = set(COMPOSE["x-omsite"]["environment"])
    assert {name for name in given - known if not name.endswith("_API_KEY")} == set()


def test_every_setting_reaches_the_containers_but_what_the_image_says_itself():
    known = {name.upper() for name in Config.model_fields}
    said = {"DEBUG", "MEDIA_ROOT", "STATIC_ROOT"}
    assert known - said <= set(COMPOSE["x-omsite"]["environment"])


def test_everything_a_server_needs_is_given():
    given = COMPOSE["x-omsite"]["environment"]
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS"} <= set(given)
    assert given["OM_DISPATCHER"] == "celery"


def test_every_variable_that_must_be_set_is_in_the_example():
    text = (ROOT / "docker-compose.yml").read_text()
    example = (ROOT / ".env.example").read_text()
    for name in set(re.findall(r"\$\{([A-Z_]+)", text)):
        assert re.search(rf"^{name}=", example, re.MULTILINE), name


@pytest.mark.parametrize("name", ["web", "proxy"])
def test_who_answers_requests_is_asked_for_its_health(name):
    dockerfile = (ROOT / "Dockerfile").read_text()
    check = str(SERVICES[name].get("healthcheck", dockerfile))
    assert "/healthz" in check


def test_every_long_running_service_is_started_again_and_checked():
    for name, service in SERVICES.items():
        assert service["restart"] in ("unless-stopped", "on-failure"), name
        if name not in ("web", "migrate", "beat"):
            assert "test" in service["healthcheck"], name


def test_the_image_runs_as_nobody_in_particular():
    steps = (ROOT / "Dockerfile").read_text()
    assert "USER omsite" in steps
    assert steps.index("USER omsite") < steps.index("\nCMD")


def test_by_hand_each_web_server_has_a_port_of_its_own(tmp_path):
    ports = [command[-1] for process, command in commands(8000, tmp_path) if process == WEB]
    assert ports == [str(8000 + n) for n in range(1, WEB.count + 1)]


def test_by_hand_no_two_workers_show_their_figures_on_one_port():
    workers = {process.name for process in PROCESSES if "worker" in process.command}
    found = metrics_ports(9100)
    assert set(found) == workers
    assert len({each["OM_METRICS_PORT"] for each in found.values()}) == len(workers)
    assert {each["OM_METRICS_PORT"] for each in metrics_ports(0).values()} == {"0"}


def test_the_proxy_leads_nobody_to_the_figures():
    assert re.search(r"location = /metrics \{\s*return 404;", TEMPLATE.read_text())


def test_nginx_keeps_its_own_variables(tmp_path):
    filled = _Braced(TEMPLATE.read_text()).safe_substitute(
        LISTEN="80", WEB_SERVERS="server a;", BODY_MEGABYTES="1"
    )
    assert "$http_upgrade" in filled
    assert "${" not in filled.replace("${...}", "")
