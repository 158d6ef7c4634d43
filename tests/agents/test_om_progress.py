import io
import json

from agents.om.progress import JsonLines, Log, Terminal
from agents.services.replay import Progress


class Tty(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_rewritten():
    out, now = Tty(), [0.0]
    terminal = Terminal(out, "Bees", clock=lambda: now[0])
    for seconds, stored in ((0, 1), (0.05, 2), (0.2, 3), (0.21, 4)):
        now[0] = seconds
        terminal(Progress(stored, 4))
    terminal.end()

    assert out.getvalue().split("\r\033[K") == [
        "",
        "Bees: 1 of 4 messages, 0 cycles",
        "Bees: 3 of 4 messages, 0 cycles",
        "Bees: 4 of 4 messages, 0 cycles",
        "",
    ]


def test_a_log_gets_a_line_now_and_then():
    out, now = io.StringIO(), [0.0]
    log = Log(out, "Bees", clock=lambda: now[0])
    for seconds, stored in ((1, 1), (5, 2), (6, 3), (11, 4)):
        now[0] = seconds
        log(Progress(stored, 4, cycles=1, waiting_for="a cycle to end or lapse"))

    assert out.getvalue().splitlines() == [
        "Bees: 2 of 4 messages, 1 cycles, waiting for a cycle to end or lapse",
        "Bees: 4 of 4 messages, 1 cycles, waiting for a cycle to end or lapse",
    ]


def test_a_program_gets_every_change():
    out = io.StringIO()
    JsonLines(out)(Progress(1, 4, cycles=2))

    assert json.loads(out.getvalue()) == {
        "event": "progress", "stored": 1, "total": 4, "cycles": 2, "waiting_for": "",
        "finished": False, "already": False,
    }  # fmt: skip
