"""Asks somebody whether a call may be run."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from windowsill import user_function

WAIT = 300.0
"""Seconds that somebody has to answer: five minutes."""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is asked to allow."""

    tool: str
    category: str
    arguments: dict[str, Any]
    """A copy: what happens to it does not change the call."""
    why: str
    """What demands that somebody is asked."""


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Says whether a call may be run. Only `True` allows it; an error, another answer or none in time does not."""


async def ask(approve: Approve, asked: Approval, seconds: float | None) -> str | None:
    """`None` when the answer is yes, otherwise what came instead. A plain function is called in a thread."""
    from anyio import move_on_after  # noqa: PLC0415 - only who asks needs it

    answer: Any = None
    with move_on_after(math.inf if seconds is None else seconds) as scope:
        try:
            answer = await user_function.call(approve, asked)
        except Exception as error:  # noqa: BLE001 - whatever a user's function raises, it did not say yes
            return f"asking for approval failed with {type(error).__name__}"
    if scope.cancelled_caught:
        return f"nobody answered within {seconds:g} seconds"
    return None if answer is True else "approval was denied"
