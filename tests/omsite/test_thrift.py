import subprocess
import sys

import pytest

HOLES = """
import gc
from pathlib import Path
from omsite.thrift import be_thrifty

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024

if {thrifty}:
    be_thrifty()
del_first = b"x" * (1 << 20)
del del_first
blocks = [b"x" * (1 << 20) for _ in range(200)]
full = resident()
blocks[::2] = [None] * 100
print(full - resident(), gc.get_freeze_count())
"""


def given_back(*, thrifty):
    """Return how many MiB of a hundred freed between others the system has back."""
    code = HOLES.format(thrifty=thrifty)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mebibytes, frozen = map(int, ended.stdout.split())
    return mebibytes, frozen


@pytest.mark.skipif(sys.platform != "linux", reason="tells of glibc")
def test_large_blocks_are_given_back_though_others_beside_them_are_kept():
    before, after = given_back(thrifty=False), given_back(thrifty=True)

    assert before[0] < 50 < 90 <= after[0]
    assert before[1] == 0 < after[1]
