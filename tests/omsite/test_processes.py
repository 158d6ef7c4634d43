"""Hold the containers against the one list of processes."""

import re
import shutil
import socket
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
import yaml
from django.conf import settings

from omsite.config import Config
from omsite.ending import END_SECONDS
from omsite.management.commands.production import (
    BODY,
    GRACE_SECONDS,
    TEMPLATE,
    _Braced,
    body_megabytes,
    commands,
    metrics_ports,
    proxy,
    proxy_site,
)
from omsite.processes import BEAT, PROCESSES, WEB
from tests.fleet.private import until

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]


def filled(text, **environment):
    """Fill in ${NAME:-default} as compose does."""
    return re.sub(
        r"\$\{([A-Z_]+):-([^}]*)\}", lambda found: environment.get(found[1]) or found[2], text
    )


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


def test_no_container_may_become_more_than_it_is_or_write_where_nothing_is_kept():
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["read_only"] is True, name
        assert not {"privileged", "cap_add"} & set(service), name


def test_the_servers_of_others_run_as_nobody_in_particular_too():
    for name in ("proxy", "postgres", "redis"):
        assert SERVICES[name]["user"] not in ("root", "0"), name


def test_beat_can_write_where_it_keeps_what_it_did_last():
    folder = BEAT.command.format(folder="/run/omsite").split()[-3].rpartition("/")[0]
    uid = re.search(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())[1]
    assert f"{folder}:uid={uid}" in SERVICES["beat"]["tmpfs"]


@pytest.mark.parametrize("drain", [None, "0", "2.5", "300"])
def test_a_container_is_given_more_time_to_end_than_its_server_takes(drain):
    given = filled(SERVICES["web"]["stop_grace_period"], OM_DRAIN_SECONDS=drain)
    minutes, seconds = re.fullmatch(r"(\d+)m([\d.]+)s", given).groups()
    takes = float(drain or Config.model_fields["om_drain_seconds"].default) + END_SECONDS
    assert 60 * int(minutes) + float(seconds) > takes
    assert GRACE_SECONDS > END_SECONDS


def test_the_proxy_takes_a_message_with_every_file_it_may_have():
    for megabytes, files in [(5, 5), (0.3, 1), (100, 100), (5, 0), (1.5, 3)]:
        config = Config(om_attachment_megabytes=megabytes, om_attachments_per_message=files)
        found = re.findall(r"client_max_body_size (\d+)m;", proxy_site(8000, config))
        room = int(found[0]) - megabytes * files
        assert len(found) == 1
        assert room * 1024 * 1024 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        assert room < 8


def test_the_proxys_container_is_told_the_same_limits_and_works_them_out_the_same_way():
    names = ("OM_ATTACHMENT_MEGABYTES", "OM_ATTACHMENTS_PER_MESSAGE")
    given, ours = SERVICES["proxy"]["environment"], COMPOSE["x-omsite"]["environment"]
    assert [given[name] for name in names] == [ours[name] for name in names]
    assert (
        f"./{BODY.relative_to(ROOT)}:/docker-entrypoint.d/{BODY.name}:ro"
        in (SERVICES["proxy"]["volumes"])
    )
    # What is not executable, or comes after 20-envsubst-on-templates.sh, has no effect there.
    assert BODY.stat().st_mode & 0o111 == 0o111
    assert BODY.name < "20"
    unset = {name: str(Config.model_fields[name.lower()].default) for name in names}
    assert body_megabytes() == body_megabytes(**unset) == body_megabytes(**dict.fromkeys(names, ""))


def test_the_template_is_filled_in_with_all_that_it_names():
    named = set(re.findall(r"\$\{([A-Z_]+)\}", TEMPLATE.read_text()))
    assert named <= {*SERVICES["proxy"]["environment"], "BODY_MEGABYTES"}
    assert "export BODY_MEGABYTES" in BODY.read_text()


class Counting(BaseHTTPRequestHandler):
    """Answer with how many bytes were sent."""

    def do_POST(self):
        said = str(len(self.rfile.read(int(self.headers["Content-Length"])))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


def beside_a_free_port():
    """Return a server whose port comes after one that nobody has."""
    while True:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
        try:
            socket.create_server(("127.0.0.1", server.server_port - 1)).close()
        except OSError:
            server.server_close()
        else:
            return server


@pytest.fixture
def proxied(tmp_path):
    """Yield the address of an nginx before a server that counts."""
    with beside_a_free_port() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port - 1
        command = proxy(port, tmp_path, Config(om_attachment_megabytes=0.5))
        with subprocess.Popen(command, stderr=subprocess.PIPE) as running:
            try:
                yield f"http://127.0.0.1:{port}/"
            finally:
                running.terminate()
                server.shutdown()


def sent(address, megabytes):
    """Send so much; return the status and how much arrived, or None while nobody listens."""
    request = Request(address, data=bytes(megabytes * 1024 * 1024), method="POST")
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, int(answer.read())
    except HTTPError as refused:
        return refused.code, 0
    except URLError:
        return None


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_a_form_that_is_allowed_goes_through_whole_and_a_larger_one_does_not(proxied):
    allowed = until(lambda: sent(proxied, 9), "nginx answers")
    refused = until(lambda: sent(proxied, 11), "nginx answers")
    assert (allowed, refused) == ((200, 9 * 1024 * 1024), (413, 0))


def test_the_proxy_leads_nobody_to_the_figures():
    assert re.search(r"location = /metrics \{\s*return 404;", TEMPLATE.read_text())


def test_nginx_keeps_its_own_variables(tmp_path):
    filled = _Braced(TEMPLATE.read_text()).safe_substitute(
        LISTEN="80", WEB_SERVERS="server a;", BODY_MEGABYTES="1"
    )
    assert "$http_upgrade" in filled
    assert "${" not in filled.replace("${...}", "")
