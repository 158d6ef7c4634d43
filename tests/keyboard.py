"""Let a process that a test starts hear Ctrl-C, however the tests themselves were started."""

import signal


def hear_ctrl_c() -> None:
    """Take SIGINT, between fork and exec: what a script starts with & is made to ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
