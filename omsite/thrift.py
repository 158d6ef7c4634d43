"""Keep a process that runs for months as small, and as quick, as what it holds."""

from __future__ import annotations

import ctypes
import gc

COLLECT_AFTER = 10_000

# Of <malloc.h>. Set by hand the threshold also stays: by itself it rises with what is freed, and
# pages of hundreds of kilobytes then leave holes between what is kept for long.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
LARGE = 128 * 1024
ARENAS = 2


def be_thrifty() -> None:
    """Look at all that is loaded as here to stay, and give large blocks back once they are free.

    A turn makes thousands of short-lived objects: to search all that is loaded for rubbish each
    time was a tenth of what a turn cost. A C library without such settings is left as it is.
    """
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_M_MMAP_THRESHOLD, LARGE)
        setting(_M_ARENA_MAX, ARENAS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
