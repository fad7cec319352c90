"""Tools that an engine runs: a definition for the model, a function, and the rules for running it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, get_type_hints, overload

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.layers import Environment, Permission, check_list
from windowsill.state.tools import ToolOffer
from windowsill.state.tools.projection import PRIORITY

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
    """Whether it may run at the same time as others of the same answer."""
    repeatable: bool = False
    """Whether running it again does no harm: after a crash it is simply run once more."""
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
        hint = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _default(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: value) if isinstance(value, (list, dict, set)) else value


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
