"""The tools of MCP servers, for an engine: their annotations decide when they are shown and asked about."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from windowsill.agent import EngineTool, ToolError
from windowsill.agent.toolset import OWN_NAMES
from windowsill.errors import InputError, WindowsillError
from windowsill.extras import extra
from windowsill.messages import Block, Image, Text, Tool
from windowsill.state.tools import ToolOffer

# ruff: noqa: PLC0415 - the protocol's own package is only there for those who installed it, and slow to load

SECONDS = 300.0
"""The time limit of a call: a server may do anything."""


@asynccontextmanager
async def mcp_tools(servers: Iterable[str], *, taken: Iterable[str] = ()) -> AsyncIterator[list[EngineTool]]:
    """Connect to servers and give their tools: each is a command to start (`npx my-server --flag`) or an address.

    A tool whose name is one of `taken`, of the engine's own or of an earlier server gets that of its server in front.
    """
    raised: Exception | None = None
    async with AsyncExitStack() as stack:
        try:
            yield await _connect(stack, servers, {*OWN_NAMES, *taken})
        except Exception as error:  # noqa: BLE001 - raised below: through the clients it would be one of a group
            raised = error
    if raised is not None:
        raise raised


async def _connect(stack: AsyncExitStack, servers: Iterable[str], taken: set[str]) -> list[EngineTool]:
    tools: list[EngineTool] = []
    for server in servers:
        with extra("mcp", "MCP"):
            from mcp.client import Client
            from mcp.client.stdio import StdioServerParameters
        is_address = server.startswith(("http://", "https://"))
        command, *arguments = [server] if is_address else shlex.split(server) or [""]
        if not command:
            raise InputError("the MCP server is empty", remedy="give a command, or an address")
        place: Any = server if is_address else StdioServerParameters(command=command, args=arguments)
        try:
            client = await stack.enter_async_context(Client(place))
            listed = (await client.list_tools()).tools
        except Exception as error:
            what = f"the MCP server {server!r} does not answer ({_cause(error)})"
            raise WindowsillError(what, remedy="try its command by hand, or check its address") from error
        for each in listed:
            name = _free_name(each.name, getattr(client.server_info, "name", "mcp"), taken)
            taken.add(name)
            tools.append(_engine_tool(client, each, name))
    return tools


def _free_name(name: str, server: str, taken: Collection[str]) -> str:
    """Return a name for a tool that no other has, in the characters that every provider takes."""
    names = itertools.chain((name, f"{server}_{name}"), (f"mcp{number}_{name}" for number in itertools.count(2)))
    clean = (re.sub(r"[^A-Za-z0-9_-]", "_", each)[:64] for each in names)
    return next(each for each in clean if each not in taken)


def category_by_hints(annotations: Any) -> str:
    """Return the category that a server's annotations state; empty where they do not say, as anything may happen then.

    The protocol takes a tool that says nothing for one that destroys.
    """
    if annotations is None:
        return ""
    if annotations.read_only_hint:
        return "read"
    if annotations.destructive_hint is None:
        return ""
    return "delete" if annotations.destructive_hint else "write"


def _engine_tool(client: Any, listed: Any, name: str) -> EngineTool:
    category = category_by_hints(listed.annotations)

    async def call(**arguments: Any) -> Any:
        answer = await client.call_tool(listed.name, arguments)
        blocks = [_block(each) for each in answer.content]
        if answer.is_error:
            raise ToolError("\n".join(each.text for each in blocks if isinstance(each, Text)) or "it failed")
        return blocks or "(no output)"

    return EngineTool(
        offer=ToolOffer(Tool(name=name, description=listed.description or "", schema=listed.input_schema), category),
        function=call,
        repeatable=category == "read",
        parallel=category == "read",
        seconds=SECONDS,
    )


def _block(content: Any) -> Block:
    match content.type:
        case "text":
            return Text(text=content.text)
        case "image":
            return Image(media_type=content.mime_type, data=content.data)
        case _:
            return Text(text=content.model_dump_json(exclude_none=True))


def _cause(error: BaseException) -> str:
    """Name the innermost error: groups say nothing."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
