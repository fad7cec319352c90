"""Profiles of the property tests: the same examples every time by default, many new ones for `make soak`.

Interrupts reach the processes that tests start, wherever the tests were started from. Bytecode is kept on disk: tests
start hundreds of processes, and each would compile the source anew.
"""

import os
import signal
import sys

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
