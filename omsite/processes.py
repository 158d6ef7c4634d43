"""Name the processes of a production server: one list for containers, and for a trial by hand."""

from __future__ import annotations

from dataclasses import dataclass

#: How many threads of a worker wait for models at once; they share one event loop.
WORKER_THREADS = 16
QUEUES = ("observe", "reflect")
#: The header of a message that says when it was sent, in seconds since 1970.
SENT_AT = "sent_at"


@dataclass(frozen=True)
class Process:
    """Hold one kind of process: its command, with ``{port}`` where it listens, and a count."""

    name: str
    command: str
    count: int = 1
    once: bool = False

    @property
    def listens(self) -> bool:
        """Tell whether it answers requests."""
        return "{port}" in self.command


def _worker(queue: str) -> str:
    return (
        f"celery -A omsite worker --queues {queue} --hostname {queue}@%h --pool threads "
        f"--concurrency {WORKER_THREADS} --without-gossip --without-mingle --loglevel WARNING"
    )


MIGRATE = Process("migrate", "python manage.py migrate --no-input", once=True)
WEB = Process("web", "python manage.py serve --host {host} --port {port}", count=2)
OBSERVE, REFLECT = (Process(f"worker-{queue}", _worker(queue)) for queue in QUEUES)
BEAT = Process("beat", "celery -A omsite beat --schedule {folder}/beat --loglevel WARNING")

PROCESSES = (MIGRATE, WEB, OBSERVE, REFLECT, BEAT)
