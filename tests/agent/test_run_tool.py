"""Runs one tool: whatever it gives or raises becomes its result."""

import asyncio
import itertools
import threading

import anyio
import pytest

from support.agents import over, results, sound
from windowsill.agent import ToolError
from windowsill.agent.calls import CANCELLED
from windowsill.messages import Image, Text

pytestmark = pytest.mark.integration


class SilentError(Exception):
    """An error that cannot say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


RAISED = [
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    SystemExit(3),
    StopIteration(),
    BaseExceptionGroup("both", [KeyboardInterrupt(), ValueError()]),
    ExceptionGroup("one", [ValueError()]),
    SilentError(),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_tool_raises_in_its_thread_becomes_its_result(error):
    """The run goes on, and nothing is left open."""

    def work() -> str:
        raise error

    running = over(work)
    assert running.run_sync("Go.").text == "done"
    ((_, words, is_error),) = results(running.session)
    assert words.startswith(f"Error: {type(error).__name__}")
    assert is_error
    assert sound(running.session)


@pytest.mark.parametrize(
    "error",
    [each for each in RAISED if not isinstance(each, KeyboardInterrupt)],
    ids=lambda error: type(error).__name__,
)
def test_whatever_an_async_tool_raises_becomes_its_result(error):
    """Also a cancellation that nobody asked the engine for: something it waited for was cancelled."""

    async def work() -> str:
        raise error

    running = over(work)
    assert running.run_sync("Go.").text == "done"
    ((_, words, is_error),) = results(running.session)
    assert words.startswith("Error: ")
    assert is_error


def test_an_interrupt_in_the_main_thread_ends_the_run_and_leaves_no_call_open():
    """It may be a person's; what ran may have taken effect."""

    async def work() -> str:
        raise KeyboardInterrupt

    running = over(work)
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        anyio.run(running.run, "Go.")
    assert results(running.session) == [("work", CANCELLED, True)]
    assert running.session.journal.store.locked(running.session.id) is None


def test_words_of_a_tool_error_are_told_as_they_are():
    """With the spaces they begin with."""

    def work() -> str:
        raise ToolError("  indented")

    running = over(work)
    running.run_sync("Go.")
    assert results(running.session) == [("work", "  indented", True)]


def test_a_generator_gives_what_it_yields():
    """Text as one text, async or not, other values as a list."""

    def pieces() -> str:
        yield "a"
        yield "b"

    async def later() -> str:
        yield "c"
        yield "d"

    def numbers() -> list:
        yield 1
        yield 2

    told = []
    for function in (pieces, later, numbers):
        running = over(function)
        running.run_sync("Go.")
        told += [words for _, words, _ in results(running.session)]
    assert told == ["ab", "cd", "[1,2]"]


def test_a_generator_without_an_end_is_left_when_its_time_is_up():
    """Its thread ends too."""
    ended = threading.Event()

    def work() -> str:
        try:
            for number in itertools.count():
                yield str(number % 10)
        finally:
            ended.set()

    running = over(work, tool={"seconds": 0.05})
    assert running.run_sync("Go.").text == "done"
    assert ended.wait(60)
    assert "took longer than 0.05 seconds" in results(running.session)[0][1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Text(text="half \ud800"), "half \\ud800"),
        ([Text(text="\udfff"), Text(text="b")], "\\udfffb"),
        ({"\ud800": 1}, "{'\\ud800': 1}"),
        (b"\xff\x00a", "\\xff\x00a"),
        (10**30, "1" + "0" * 30),
        ("", ""),
        (None, "(no output)"),
    ],
    ids=repr,
)
def test_what_no_request_could_hold_is_told_all_the_same(given, told):
    """Half characters, binary, numbers without end."""
    running = over(lambda: given)
    assert running.run_sync("Go.").ok
    assert results(running.session) == [("work", told, False)]
    assert sound(running.session)


def test_a_block_that_cannot_be_written_down_is_an_error():
    """Not the end of the run."""
    running = over(lambda: Image(media_type="image/png", url="\ud800"))
    assert running.run_sync("Go.").ok
    assert results(running.session)[0][2]
    assert sound(running.session)


def test_an_output_of_megabytes_is_kept_whole_and_sent_in_part():
    """The request fits."""
    running = over(lambda: "line\n" * 600_000)
    assert running.run_sync("Go.").ok
    ref = next(message.results[0].ref for message in running.session.messages() if message.results)
    assert (ref.bytes, ref.lines) == (3_000_000, 600_000)
    running.session.outputs.verify(ref.id)
    assert "line" in running.session.tools.tool_output_cache(ref.id, offset=599_999)
    assert running.session.calls[-1].tokens <= 60_000
