"""Runs one tool: in its time, cancellable, and whatever it raises becomes its result."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from anyio import current_effective_deadline, fail_after, get_cancelled_exc_class, to_thread

from windowsill.engine.tools import EngineTool
from windowsill.messages import Block, Document, Image, OutputRef, Text, ToolUse

LONGEST_ERROR = 4_000
"""Characters of an error that a model is told."""

_BLOCKS = (Text, Image, Document)


class ToolError(Exception):
    """Raised by a tool whose words are for the model as they are."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    call: ToolUse
    blocks: tuple[Block, ...]
    is_error: bool = False
    seconds: float = 0.0
    ran: bool = True
    """False when the tool was never begun."""
    ref: OutputRef | None = None
    """What the tool kept in `session.outputs` itself, and gave the ref of."""

    @property
    def text(self) -> str:
        """The words of the result."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))


def refused(call: ToolUse, why: str, *, ran: bool = False) -> Ran:
    """A call that was not run, or not to its end."""
    return Ran(call=call, blocks=(Text(text=sound(why)),), is_error=True, ran=ran)


async def run(tool: EngineTool, call: ToolUse, arguments: dict[str, Any]) -> Ran:
    """Run a call; only a cancellation from outside, and an interrupt that may be a person's, are raised."""
    begun = time.monotonic()
    try:
        values = _typed(tool, arguments)
        with fail_after(tool.seconds):
            given = await _given(tool, values, begun + tool.seconds)
        if isinstance(given, OutputRef):
            return Ran(call=call, blocks=(), seconds=time.monotonic() - begun, ref=given)
        blocks, is_error = _blocks(given), False
    except ToolError as error:
        blocks, is_error = (Text(text=sound(_words(error))),), True
    except TimeoutError as error:
        late = time.monotonic() - begun >= tool.seconds
        said = f"it took longer than {tool.seconds:g} seconds and may still be at work" if late else _told(error)
        blocks, is_error = (Text(text=sound(f"Error: {said}")),), True
    except get_cancelled_exc_class() as error:
        if current_effective_deadline() == -math.inf:
            raise
        # Nobody cancelled the run: something that the tool waited for was.
        blocks, is_error = (Text(text=sound(f"Error: {_told(error)}")),), True
    except KeyboardInterrupt as error:
        if threading.current_thread() is threading.main_thread():
            raise
        blocks, is_error = (Text(text=f"Error: {_told(error)}"),), True
    except (Exception, SystemExit, GeneratorExit, BaseExceptionGroup) as error:  # noqa: BLE001 - a tool may raise anything; it must not end the agent
        blocks, is_error = (Text(text=sound(f"Error: {_told(error)}")),), True
    return Ran(call=call, blocks=blocks, is_error=is_error, seconds=time.monotonic() - begun)


async def _given(tool: EngineTool, values: dict[str, Any], until: float) -> Any:
    """What a function gives, whatever kind of function it is."""
    if inspect.iscoroutinefunction(tool.function):
        return await tool.function(**values)
    given = await to_thread.run_sync(
        in_thread, partial(_collected, partial(tool.function, **values), until), abandon_on_cancel=True
    )
    if inspect.isawaitable(given):
        given = await given
    return _joined([piece async for piece in given]) if isinstance(given, AsyncIterator) else given


def in_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that is not a person's: there an interrupt or an exit is an error like any other."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        # Through a coroutine it would come out as another one.
        if isinstance(error, StopIteration):
            raise ToolError(f"Error: {_told(error)}") from error
        raise
    except BaseException as error:
        raise ToolError(f"Error: {_told(error)}") from error


def _collected(function: Callable[[], Any], until: float) -> Any:
    """What a function gives; of one that gives piece by piece, all that it gives in its time."""
    given = function()
    if not inspect.isgenerator(given):
        return given
    return _joined(list(_in_time(given, until)))


def _in_time(pieces: Iterator[Any], until: float) -> Iterator[Any]:
    for piece in pieces:
        # Nobody waits for a thread whose time is up, and nothing else ends it.
        if time.monotonic() > until:
            return
        yield piece


def _joined(pieces: list[Any]) -> Any:
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


def _typed(tool: EngineTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function's annotations want them."""
    if tool.arguments is None:
        return arguments
    made = msgspec.convert(arguments, tool.arguments)
    return {name: getattr(made, name) for name in tool.arguments.__struct_fields__}


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even say what it is
        return ""


def _told(error: BaseException) -> str:
    text = _words(error).strip()
    return f"{type(error).__name__}: {text}"[:LONGEST_ERROR] if text else type(error).__name__


def _blocks(given: Any) -> tuple[Block, ...]:
    """What a tool gave, as a result says it."""
    if isinstance(given, _BLOCKS):
        return (_sendable(given),)
    if isinstance(given, (list, tuple)) and given and all(isinstance(each, _BLOCKS) for each in given):
        return tuple(_sendable(each) for each in given)
    if given is None:
        return (Text(text="(no output)"),)
    if isinstance(given, (bytes, bytearray, memoryview)):
        return (Text(text=bytes(given).decode(errors="backslashreplace")),)
    if isinstance(given, str):
        return (Text(text=sound(given)),)
    try:
        return (Text(text=msgspec.json.encode(given).decode()),)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return (Text(text=sound(str(given))),)


def _sendable(block: Block) -> Block:
    """A block that can be written down; an error for one that cannot."""
    if isinstance(block, Text):
        return msgspec.structs.replace(block, text=sound(block.text))
    msgspec.json.encode(block)
    return block


def sound(text: str) -> str:
    """A text that can be sent: file names may hold half characters, which no JSON can say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text
