"""Tools that an engine runs: a definition for the model, a function, and what is allowed to happen with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, overload

import msgspec

from windowsill.engine.signature import arguments_of, schema_of
from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.projection import Offered
from windowsill.state.projection.offered import PRIORITY
from windowsill.state.runtime import Environment, Permission

SECONDS = 120.0
"""How long a tool may take when nobody says."""


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What all providers take."""


class EngineTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with its function."""

    definition: Tool
    function: Callable[..., Any]
    category: str = ""
    """What it does: `read`, `write`, `execute`, ...; empty takes it from its name."""
    permissions: tuple[Permission, ...] = ()
    environments: tuple[Environment, ...] | None = None
    priority: int = PRIORITY
    parallel: bool = False
    """Whether it may run at the same time as others of the same answer."""
    repeatable: bool = False
    """Whether running it again does no harm: after a crash it is simply run once more."""
    seconds: float = SECONDS
    """How long it may take."""
    arguments: type[msgspec.Struct] | None = None
    """What its function takes; without it the function gets what the model passed, as keywords."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @property
    def offered(self) -> Offered:
        """What a projection has to know of it."""
        return Offered(self.definition, self.category, self.permissions, self.environments, self.priority)


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
    parallel: bool = ...,
    repeatable: bool = ...,
    seconds: float = ...,
) -> Callable[[Callable[..., Any]], EngineTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    category: str = "",
    permissions: Iterable[Permission] = (),
    environments: Iterable[Environment] | None = None,
    priority: int = PRIORITY,
    parallel: bool = False,
    repeatable: bool = False,
    seconds: float = SECONDS,
) -> EngineTool | Callable[[Callable[..., Any]], EngineTool]:
    """Make a tool of a function: its signature becomes the schema, its docstring the description."""

    def make(made_of: Callable[..., Any]) -> EngineTool:
        called = name or getattr(made_of, "__name__", "")
        if not _NAME.fullmatch(called):
            remedy = "give name= with letters, digits, _ and -, at most 64 of them"
            raise InputError(f"{called!r} is no name that every provider takes for a tool", remedy=remedy)
        arguments = arguments_of(made_of)
        told = description or inspect.cleandoc(made_of.__doc__ or "")
        if not seconds > 0:
            raise InputError(f"tool {called!r} may take {seconds} seconds", remedy="give seconds above 0")
        return EngineTool(
            definition=Tool(name=called, description=told, schema=schema_of(arguments, called)),
            function=made_of,
            category=category,
            permissions=tuple(permissions),
            environments=None if environments is None else tuple(environments),
            priority=priority,
            parallel=parallel,
            repeatable=repeatable,
            seconds=seconds,
            arguments=arguments,
        )

    return make if function is None else make(function)


def as_tool(given: AnyTool) -> EngineTool:
    """A tool as an engine has it, from one, from a function, or from a definition with its function."""
    if isinstance(given, EngineTool):
        return given
    if isinstance(given, tuple):
        definition, function = given
        return EngineTool(definition=definition, function=function)
    if not callable(given):
        raise InputError(f"{given!r:.80} is no tool", remedy="give functions, or make tools with @tool")
    return tool(given)
