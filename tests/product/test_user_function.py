"""Calls a function of the user's, whatever kind of function it is."""

import contextvars
import subprocess
import sys
import threading

import anyio
import pytest

from windowsill import user_function
from windowsill.user_function import UserFunctionError

pytestmark = pytest.mark.unit

WHO = contextvars.ContextVar("who", default="nobody")


async def later(value):
    return value + 1


class Later:
    async def __call__(self, value):
        return value + 1


@pytest.mark.parametrize("function", [lambda value: value + 1, later, Later(), lambda value: later(value + 0)])
def test_any_kind_of_function_is_called(function):
    """Plain or async, an object that is called, or a plain function that returns an awaitable."""
    assert anyio.run(user_function.call, function, 1) == 2


def test_a_plain_function_runs_in_a_thread_that_knows_its_caller():
    """Context variables are those of the caller, so that spans have their parent."""

    async def run():
        WHO.set("me")
        return await user_function.call(lambda: (WHO.get(), threading.current_thread()))

    who, thread = anyio.run(run)
    assert who == "me"
    assert thread is not threading.main_thread()
    assert thread.daemon


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("now"), StopIteration(), GeneratorExit()])
def test_what_would_end_the_program_is_an_error_like_any_other(error):
    """It keeps its name."""

    def end():
        raise error

    with pytest.raises(UserFunctionError, match=f"^{type(error).__name__}"):
        anyio.run(user_function.call, end)


def test_an_ordinary_error_is_raised_as_it_is():
    """Whoever called decides what it means."""
    with pytest.raises(ZeroDivisionError):
        anyio.run(user_function.call, lambda: 1 / 0)


def test_a_function_that_never_returns_holds_up_neither_the_caller_nor_the_end_of_the_program():
    """Its thread is left behind."""
    code = """
import threading
import anyio
from windowsill import user_function

async def run():
    with anyio.move_on_after(0.05) as scope:
        await user_function.call(threading.Event().wait)
    print(scope.cancelled_caught)

anyio.run(run)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "True\n"
