"""Call a function of the user's: a tool, an approval, a validator, a model.

A plain function runs in a daemon thread of its own, so that one that never returns holds up neither the event loop
nor the end of the program. Python cannot stop a thread: whoever is cancelled or out of time leaves it behind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from threading import Event, Thread
from typing import Any


class UserFunctionError(Exception):
    """A user's function ended with what is not an ordinary error, such as `SystemExit`; the text names it."""


async def call(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function and await its result where it has to be awaited; raise what the function raises."""
    if is_async(function):
        result = function(*arguments, **named)
    else:
        result = await in_thread(partial(function, *arguments, **named))
    return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether this is an async function, or an object that is called by one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call a plain function in a daemon thread; leave the thread behind when cancelled."""
    from anyio import to_thread  # noqa: PLC0415 - only who calls needs it

    result: Future[Any] = Future()
    done = Event()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # noqa: BLE001 - in a thread nobody else would hear of it
            # What would end the program, or a coroutine, becomes an error like any other.
            ordinary = isinstance(error, Exception) and not isinstance(error, StopIteration)
            result.set_exception(error if ordinary else UserFunctionError(describe(error)))
        done.set()

    Thread(target=copy_context().run, args=(run,), daemon=True, name="windowsill-user-function").start()
    try:
        await to_thread.run_sync(done.wait, abandon_on_cancel=True)
    finally:
        done.set()
    return result.result()


def describe(error: BaseException) -> str:
    """Name an error with its text, where it has one that can be had."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error that cannot even say what it is
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
