"""Run one tool: within its time, cancellable, and whatever it raises becomes its result."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from anyio import current_effective_deadline, fail_after, get_cancelled_exc_class

from windowsill import user_function
from windowsill.agent.tools import EngineTool
from windowsill.messages import Block, Document, Image, OutputRef, Text, ToolUse
from windowsill.user_function import UserFunctionError

MAX_ERROR_CHARACTERS = 4_000
"""Characters of an error that a model is told."""

_BLOCKS = (Text, Image, Document)


class ToolError(Exception):
    """Raised by a tool whose words are for the model as they are."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, before it is recorded."""

    call: ToolUse
    blocks: tuple[Block, ...]
    is_error: bool = False
    seconds: float = 0.0
    ran: bool = True
    """False when the tool was never begun."""
    ref: OutputRef | None = None
    """The output that the tool kept in `session.outputs` itself, and returned the ref of."""

    @property
    def text(self) -> str:
        """The text of the result."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))


def refuse(call: ToolUse, why: str, *, ran: bool = False) -> Outcome:
    """Return the outcome of a call that was not run, or not to its end."""
    return Outcome(call=call, blocks=(Text(text=encodable(why)),), is_error=True, ran=ran)


async def run(tool: EngineTool, call: ToolUse, arguments: dict[str, Any]) -> Outcome:
    """Run a call; raise only a cancellation from outside, and an interrupt that may be a person's."""
    begun = time.monotonic()
    try:
        with fail_after(tool.seconds):
            value = await _call(tool, _convert(tool, arguments), begun + tool.seconds)
        if isinstance(value, OutputRef):
            return Outcome(call=call, blocks=(), seconds=time.monotonic() - begun, ref=value)
        return Outcome(call=call, blocks=_blocks(value), seconds=time.monotonic() - begun)
    except ToolError as error:
        text = _text(error)
    except BaseException as error:
        if _comes_from_outside(error):
            raise
        late = isinstance(error, TimeoutError) and time.monotonic() - begun >= tool.seconds
        why = f"it took longer than {tool.seconds:g} seconds and may still be at work" if late else _describe(error)
        text = f"Error: {why}"
    blocks = (Text(text=encodable(text)),)
    return Outcome(call=call, blocks=blocks, is_error=True, seconds=time.monotonic() - begun)


def _comes_from_outside(error: BaseException) -> bool:
    """Tell whether an error is a person's interrupt or a cancellation of the run, not the tool's own."""
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    # Without a cancelled scope around it, something that the tool waited for was cancelled.
    return isinstance(error, get_cancelled_exc_class()) and current_effective_deadline() == -math.inf


async def _call(tool: EngineTool, values: dict[str, Any], until: float) -> Any:
    """Return what the tool's function returns or yields, whatever kind of function it is."""
    function = partial(tool.function, **values)
    if user_function.is_async(tool.function):
        value = await function()
    else:
        value = await user_function.call(_collect, function, until)
    return _join([piece async for piece in value]) if isinstance(value, AsyncIterator) else value


def _collect(function: Callable[[], Any], until: float) -> Any:
    """Return what a function returns; of a generator, all that it yields in its time."""
    value = function()
    return _join(list(_in_time(value, until))) if inspect.isgenerator(value) else value


def _in_time(pieces: Iterator[Any], until: float) -> Iterator[Any]:
    for piece in pieces:
        # Nobody waits for a thread whose time is up, and nothing else ends it.
        if time.monotonic() > until:
            return
        yield piece


def _join(pieces: list[Any]) -> Any:
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


def _convert(tool: EngineTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert the arguments to the types of the function's annotations."""
    if tool.arguments is None:
        return arguments
    made = msgspec.convert(arguments, tool.arguments)
    return {name: getattr(made, name) for name in tool.arguments.__struct_fields__}


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even say what it is
        return ""


def _describe(error: BaseException) -> str:
    text = str(error) if isinstance(error, UserFunctionError) else user_function.describe(error)
    return text[:MAX_ERROR_CHARACTERS]


def _blocks(value: Any) -> tuple[Block, ...]:
    """Return what a tool returned as the blocks of its result."""
    if isinstance(value, _BLOCKS):
        return (_check_block(value),)
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, _BLOCKS) for each in value):
        return tuple(_check_block(each) for each in value)
    if value is None:
        return (Text(text="(no output)"),)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (Text(text=bytes(value).decode(errors="backslashreplace")),)
    if isinstance(value, str):
        return (Text(text=encodable(value)),)
    try:
        return (Text(text=msgspec.json.encode(value).decode()),)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return (Text(text=encodable(str(value))),)


def _check_block(block: Block) -> Block:
    """Return a block that can be written down; raise for one that cannot."""
    if isinstance(block, Text):
        return msgspec.structs.replace(block, text=encodable(block.text))
    msgspec.json.encode(block)
    return block


def encodable(text: str) -> str:
    """Return the text with half characters escaped: file names may hold them, and no JSON can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text
