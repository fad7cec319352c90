"""Tools that an engine runs: a definition for the model, a function, and the rules for running it."""

from __future__ import annotations

import inspect
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias, get_type_hints, overload

import msgspec
from anyio import current_effective_deadline, fail_after, get_cancelled_exc_class

from windowsill import user_function
from windowsill.errors import InputError
from windowsill.messages import Block, Document, Image, OutputRef, Text, Tool, ToolUse
from windowsill.providers.wire import escape_halves
from windowsill.state.layers import Environment, Permission, check_list
from windowsill.state.tools import ToolOffer
from windowsill.state.tools.projection import PRIORITY
from windowsill.user_function import UserFunctionError

SECONDS = 120.0
"""The time limit of a tool that states none."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""A name that all providers accept."""


class EngineTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with its function, which can still be called as before."""

    offer: ToolOffer
    """The definition, and what decides whether a model sees it."""
    function: Callable[..., Any]
    parallel: bool = False
    """True for a tool that may run at the same time as others of the same answer."""
    repeatable: bool = False
    """True for a tool that does no harm when it runs again: after a crash it is simply run once more."""
    seconds: float = SECONDS
    """The time limit of one call."""
    arguments: type[msgspec.Struct] | None = None
    """The type of the function's arguments; without it the function gets the model's arguments as keywords."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function, as if it were not a tool."""
        return self.function(*arguments, **named)

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.offer.tool.name


AnyTool: TypeAlias = EngineTool | Callable[..., Any] | tuple[Tool, Callable[..., Any]]


@overload
def tool(function: Callable[..., Any], /) -> EngineTool: ...


@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    category: str = ...,
    permissions: Iterable[Permission] = ...,
    environments: Iterable[Environment] | None = ...,
    priority: int = ...,
    paths: Iterable[str] = ...,
    urls: Iterable[str] = ...,
    commands: Iterable[str] = ...,
    parallel: bool = ...,
    repeatable: bool = ...,
    seconds: float = ...,
) -> Callable[[Callable[..., Any]], EngineTool]: ...


def tool(  # noqa: PLR0913 - settings are read by name, and most are left alone
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    category: str = "",
    permissions: Iterable[Permission] = (),
    environments: Iterable[Environment] | None = None,
    priority: int = PRIORITY,
    paths: Iterable[str] = (),
    urls: Iterable[str] = (),
    commands: Iterable[str] = (),
    parallel: bool = False,
    repeatable: bool = False,
    seconds: float = SECONDS,
) -> EngineTool | Callable[[Callable[..., Any]], EngineTool]:
    """Make a tool of a function: its signature becomes the schema, its docstring the description."""

    def make(function: Callable[..., Any]) -> EngineTool:
        tool_name = name or getattr(function, "__name__", "")
        if not _NAME.fullmatch(tool_name):
            remedy = "give name= with letters, digits, _ and -, at most 64 of them"
            raise InputError(f"{tool_name!r} is not a name that every provider accepts for a tool", remedy=remedy)
        if not seconds > 0:
            raise InputError(f"tool {tool_name!r} may take {seconds} seconds", remedy="give seconds above 0")
        arguments = arguments_of(function)
        text, where = description or inspect.cleandoc(function.__doc__ or ""), f"tool {tool_name!r}"
        return EngineTool(
            offer=ToolOffer(
                Tool(name=tool_name, description=text, schema=schema_of(arguments, tool_name)),
                category,
                tuple(permissions),
                None if environments is None else tuple(environments),
                priority,
                check_list(paths, f"{where}, paths"),
                check_list(urls, f"{where}, urls"),
                check_list(commands, f"{where}, commands"),
            ),
            function=function,
            parallel=parallel,
            repeatable=repeatable,
            seconds=seconds,
            arguments=arguments,
        )

    return make if function is None else make(function)


def as_tool(given: AnyTool) -> EngineTool:
    """Return a tool made from a tool, a function, or a definition with its function."""
    if isinstance(given, EngineTool):
        return given
    if isinstance(given, tuple):
        definition, function = given
        return EngineTool(offer=ToolOffer(definition), function=function)
    if not callable(given):
        raise InputError(f"{given!r:.80} is not a tool", remedy="give functions, or make tools with @tool")
    return tool(given)


def arguments_of(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """Return the arguments of a function as a type; raise `InputError` for what no model can pass."""
    name = getattr(function, "__name__", "tool")
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise InputError(
            f"the signature of {name!r} cannot be read: {error}", remedy="annotate it, or give a definition"
        ) from None
    fields: list[Any] = []
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"{name!r} takes {parameter}, which a model cannot pass", remedy="take each argument by its name"
            )
        field, default = (parameter.name, hints.get(parameter.name, Any)), parameter.default
        if isinstance(default, (list, dict, set)):
            default = msgspec.field(default_factory=partial(lambda value: value, default))
        fields.append(field if default is parameter.empty else (*field, default))
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def schema_of(arguments: type[msgspec.Struct], name: str) -> dict[str, Any]:
    """Return the JSON Schema of a type of arguments; raise `InputError` where a type has none."""
    try:
        (reference,), parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise InputError(
            f"tool {name!r} takes something that has no JSON Schema: {error}",
            remedy="use text, numbers, lists, dicts, Literals or structs",
        ) from None
    # The name in the schema may differ from the type's: that of a lambda is not an identifier.
    own = parts.pop(reference["$ref"].removeprefix("#/$defs/"))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": own["properties"],
        "required": own["required"],
        "additionalProperties": False,
    }
    return {**schema, "$defs": parts} if parts else schema


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
    return Outcome(call=call, blocks=(Text(text=escape_halves(why)),), is_error=True, ran=ran)


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
        described = str(error) if isinstance(error, UserFunctionError) else user_function.describe(error)
        why = f"it took longer than {tool.seconds:g} seconds and may still be at work" if late else described
        text = f"Error: {why[:MAX_ERROR_CHARACTERS]}"
    blocks = (Text(text=escape_halves(text)),)
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
    if not inspect.isgenerator(value):
        return value
    # Nobody waits for a thread whose time is up, and nothing else ends it.
    return _join(list(takewhile(lambda _piece: time.monotonic() <= until, value)))


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
        return (Text(text=escape_halves(value)),)
    try:
        return (Text(text=msgspec.json.encode(value).decode()),)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return (Text(text=escape_halves(str(value))),)


def _check_block(block: Block) -> Block:
    """Return a block that can be written down; raise for one that cannot."""
    if isinstance(block, Text):
        return msgspec.structs.replace(block, text=escape_halves(block.text))
    msgspec.json.encode(block)
    return block
