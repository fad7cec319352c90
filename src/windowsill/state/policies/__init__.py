"""Hard policies in code: paths and hosts that are out of bounds, limits, and calls that somebody has to allow first.

This stands between a model and the tools of a program. It is not a sandbox: what a command does once it runs, and links
that change between the check and the use, are the operating system's to guard.
"""

from __future__ import annotations

from windowsill.state.policies.guard import Approval, Approve, Guard, Hosts, Verdict
from windowsill.state.policies.paths import ForbiddenPaths

__all__ = ["Approval", "Approve", "ForbiddenPaths", "Guard", "Hosts", "Verdict"]
