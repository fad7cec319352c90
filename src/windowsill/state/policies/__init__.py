"""Hard policies in code: paths and hosts that are out of bounds, limits, and calls that somebody has to allow first.

This stands between a model and the tools of a program. It is no sandbox: what a command does once it runs, and links
that change between the check and the use, are the operating system's to guard.
"""

from __future__ import annotations

from windowsill.state.policies.approval import Approval, Approve
from windowsill.state.policies.domains import Hosts
from windowsill.state.policies.guard import Guard
from windowsill.state.policies.paths import Fence, forbidden
from windowsill.state.policies.verdict import Verdict

__all__ = ["Approval", "Approve", "Fence", "Guard", "Hosts", "Verdict", "forbidden"]
