"""Profiles of the property tests: the same examples every time by default, many new ones for `make soak`.

Interrupts reach the processes that tests start, wherever the tests were started from. Bytecode is kept on disk: tests
start hundreds of processes, and each would compile the source anew. Files of tests are kept in memory where the system
has room: a store waits for the disk at each append, and no test takes away the power.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile

from hypothesis import HealthCheck, settings

# A shell starts background jobs with interrupts ignored, and so would be the processes of tests that interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "quick", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "few", deadline=None, derandomize=True, max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")

MEMORY, ROOM = "/dev/shm", 4 << 30
"""A folder in memory, and the bytes that have to be free there: about a gigabyte is used."""


def in_memory() -> bool:
    """Tell whether files of tests can be kept in memory, programs that they write and run included."""
    return (
        os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free > ROOM
        and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    )


if "TMPDIR" not in os.environ and in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

# What is loaded to collect the tests stays: looking through it for garbage, again and again, is a fifth of the work.
gc.disable()


def pytest_collection_finish():
    """Look for garbage from now on."""
    gc.collect()
    gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Load no file without pure code for `make quick`: the others load clients, servers and browsers."""
    if config.option.markexpr.startswith("unit") and collection_path.name.startswith("test_"):
        return "mark.unit" not in collection_path.read_text() or None
    return None
