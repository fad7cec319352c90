"""Asks somebody whether a call may be run."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, TypeAlias

import msgspec

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
            if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(type(approve).__call__):
                answer = approve(asked)
            else:
                answer = await _in_thread(approve, asked)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - whatever a user's function raises, it did not say yes
            return f"asking for approval failed with {type(error).__name__}"
    if scope.cancelled_caught:
        return f"nobody answered within {seconds:g} seconds"
    return None if answer is True else "approval was denied"


async def _in_thread(approve: Approve, asked: Approval) -> Any:
    """The answer of a plain function. Its thread ends with the process, which one that never answers cannot hold up."""
    from anyio import to_thread  # noqa: PLC0415 - only who asks needs it

    answer: Future[Any] = Future()
    done = Event()

    def call() -> None:
        try:
            answer.set_result(approve(asked))
        except BaseException as error:  # noqa: BLE001 - in a thread nobody else would hear of it
            answer.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
        done.set()

    Thread(target=copy_context().run, args=(call,), daemon=True, name="windowsill-approval").start()
    try:
        await to_thread.run_sync(done.wait, abandon_on_cancel=True)
    finally:
        done.set()
    return answer.result()
