"""Keep a process that runs for months as small as what it holds."""

from __future__ import annotations

import ctypes
import gc

# Of <malloc.h>. Set by hand they also stay: by itself the threshold rises with what is freed,
# and pages of hundreds of kilobytes then leave holes between what is kept for long.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
LARGE = 128 * 1024
ARENAS = 2


def be_thrifty() -> None:
    """Give large blocks back once they are free, and look for garbage only in what came since.

    Call it once everything is loaded. Where the C library has no such settings they are left out.
    """
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_M_MMAP_THRESHOLD, LARGE)
        setting(_M_ARENA_MAX, ARENAS)
    gc.collect()
    gc.freeze()
