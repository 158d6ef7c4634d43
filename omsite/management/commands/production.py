"""Run the process set of a production server on one machine, proxy included."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from omsite.config import BASE, Config
from omsite.processes import PROCESSES, Process

NOTHING: Mapping[str, str] = MappingProxyType({})
#: Beyond the time in which turns may end: more than a server gives the rest of its work.
GRACE_SECONDS = 10.0
REST_SECONDS = 1.0
PROXY = BASE / "omsite" / "proxy"
TEMPLATE, BODY = PROXY / "nginx.conf.template", PROXY / "15-body.envsh"

_NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


@dataclass
class Running:
    """Hold one process that is kept running."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes]
    besides: Mapping[str, str] = field(default_factory=dict)
    again_at: float = 0.0


@dataclass
class Supervisor:
    """Start processes, start again what ends, and end all of them together."""

    environment: dict[str, str]
    patience: float
    running: list[Running] = field(default_factory=list)

    def start(self, name: str, command: list[str], besides: Mapping[str, str] = NOTHING) -> None:
        """Start a process and keep it running, with an environment of its own besides."""
        self.running.append(Running(name, command, self._open(command, besides), besides))

    def do(self, command: list[str]) -> None:
        """Run a process to its end. Raises CalledProcessError."""
        subprocess.run(command, cwd=BASE, env=self.environment, check=True)

    def tend(self, now: float) -> None:
        """Start again, after a rest, what has ended."""
        for each in self.running:
            if each.process.poll() is None:
                each.again_at = 0.0
            elif not each.again_at:
                print(f"{each.name} ended with {each.process.returncode}; it is started again.")
                each.again_at = now + REST_SECONDS
            elif now >= each.again_at:
                each.process, each.again_at = self._open(each.command, each.besides), 0.0

    def end(self) -> None:
        """Ask everything to end, the proxy last, and insist after a while."""
        for each in reversed(self.running):
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + self.patience
        for each in self.running:
            try:
                each.process.wait(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.process.kill()

    def _open(self, command: list[str], besides: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=BASE, env={**self.environment, **besides})


class Command(BaseCommand):
    """Run web servers, workers, beat and nginx until interrupted."""

    help = (
        "Run what docker-compose.yml runs, without containers: two web servers, the workers, beat "
        "and nginx. DATABASE_URL, REDIS_URL and SECRET_KEY name the servers and the secret."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        if settings.EMBEDDED:
            raise CommandError("Set REDIS_URL: without it everything runs in one process.")
        if shutil.which("nginx") is None:
            raise CommandError("nginx is not installed. On Debian: apt-get install nginx-light")
        with tempfile.TemporaryDirectory(prefix="omsite-") as folder:
            self._run(port, Path(folder))

    def _run(self, port: int, folder: Path) -> None:
        environment = {**os.environ, "STATIC_ROOT": str(folder / "static")}
        patience = settings.CONFIG.om_drain_seconds + GRACE_SECONDS
        supervisor = Supervisor(environment, patience)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            supervisor.do(_python("manage.py", "collectstatic", "--no-input", "--verbosity", "0"))
            metrics = metrics_ports(settings.CONFIG.om_metrics_port)
            for process, command in commands(port, folder):
                if process.once:
                    supervisor.do(command)
                else:
                    supervisor.start(process.name, command, metrics.get(process.name, {}))
            supervisor.start("proxy", proxy(port, folder, settings.CONFIG))
            self._wait(supervisor, port)
        except KeyboardInterrupt:
            self.stdout.write("Ending.")
        finally:
            supervisor.end()

    def _wait(self, supervisor: Supervisor, port: int) -> None:
        """Tend the processes until interrupted; say once that the server is ready."""
        ready = False
        while True:
            supervisor.tend(time.monotonic())
            if not ready and (ready := _is_ready(port)):
                self.stdout.write(f"omsite is ready: http://127.0.0.1:{port}/  (Ctrl-C ends it)")
            time.sleep(0.2)


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:
        return False


def commands(port: int, folder: Path) -> list[tuple[Process, list[str]]]:
    """Return each process with its command; web servers get the ports after the proxy's."""
    found = []
    ports = iter(range(port + 1, port + 100))
    for process in PROCESSES:
        for _ in range(process.count):
            place = next(ports) if process.listens else 0
            found.append((process, _command(process, place, folder)))
    return found


def metrics_ports(first: int) -> dict[str, dict[str, str]]:
    """Return what names the port of each worker's figures: on one machine no two share one."""
    workers = (process.name for process in PROCESSES if process.name.startswith("worker"))
    return {
        name: {"OM_METRICS_PORT": str(first + n if first else 0)} for n, name in enumerate(workers)
    }


def _command(process: Process, port: int, folder: Path) -> list[str]:
    text = process.command.format(host="127.0.0.1", port=port, folder=folder)
    program, *rest = shlex.split(text)
    return _python(*rest) if program == "python" else _python("-m", program, *rest)


def _python(*rest: str) -> list[str]:
    return [sys.executable, *rest]


def proxy(port: int, folder: Path, config: Config) -> list[str]:
    """Write what nginx is told into a folder; return the command that runs it."""
    path = folder / "nginx.conf"
    # Root's nginx would answer as somebody who may not write into the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    path.write_text(_NGINX.format(user=user, folder=folder, site=proxy_site(port, config)))
    return ["nginx", "-p", str(folder), "-c", str(path)]


def proxy_site(port: int, config: Config) -> str:
    """Return what the proxy is told: where it listens, to whom it leads, how much it takes."""
    web = next(process for process in PROCESSES if process.listens)
    servers = " ".join(f"server 127.0.0.1:{port + n};" for n in range(1, web.count + 1))
    values = {
        "LISTEN": f"127.0.0.1:{port}",
        "WEB_SERVERS": servers,
        "BODY_MEGABYTES": body_megabytes(
            OM_ATTACHMENT_MEGABYTES=str(config.om_attachment_megabytes),
            OM_ATTACHMENTS_PER_MESSAGE=str(config.om_attachments_per_message),
        ),
    }
    return _Braced(TEMPLATE.read_text()).safe_substitute(values)


def body_megabytes(**environment: str) -> str:
    """Return how much one form may carry, as the proxy's container works it out."""
    script = f'. "{BODY}"; echo "$BODY_MEGABYTES"'
    found = {"PATH": os.environ.get("PATH", os.defpath), **environment}
    done = subprocess.run(
        ["sh", "-c", script], env=found, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class _Braced(Template):
    """Fill in ${NAME} alone: nginx has variables of its own, without braces."""

    pattern = r"\$\{(?P<braced>[A-Z_]+)\}|(?P<escaped>(?!))|(?P<named>(?!))|(?P<invalid>(?!))"  # type: ignore[assignment]
