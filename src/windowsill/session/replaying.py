"""Builds the exact request of a past model call again."""

from __future__ import annotations

import msgspec

from windowsill import formats
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.payload import build_body
from windowsill.compose.rendering import Rendering, shows_refs
from windowsill.errors import DamagedError
from windowsill.history.history import Call
from windowsill.messages import Message, Tool
from windowsill.session.ledger import Ledger


def request_of(ledger: Ledger, call: Call) -> bytes:
    """The body of the request that was composed then: same view, same parts, same bytes."""
    format = formats.get(call.format, call.demands)
    system, tools = parts_of(ledger, call)
    rest = _part(ledger, call, "rest")
    view = ledger.at(call.at).view
    return build_body(
        format,
        Rendering(format, call.demands, refs=shows_refs(tools)).render(view, call.terms),
        system=system,
        tools=tools,
        rest=msgspec.json.decode(rest, type=dict[str, msgspec.Raw]) if rest is not None else {},
        model=call.model,
        breakpoints=Breakpoints(**call.breakpoints),
    )


def parts_of(ledger: Ledger, call: Call) -> tuple[Message | None, tuple[Tool, ...]]:
    """The system prompt and the tools that a request had."""
    system, tools = _part(ledger, call, "system"), _part(ledger, call, "tools")
    return (
        msgspec.json.decode(system, type=Message) if system is not None else None,
        msgspec.json.decode(tools, type=tuple[Tool, ...]) if tools is not None else (),
    )


def _part(ledger: Ledger, call: Call, name: str) -> bytes | None:
    id = call.blobs.get(name)
    if id is None:
        return None
    data = ledger.store.blob(ledger.session, id)
    if data is None:
        raise DamagedError(f"the {name} of this request is missing from the store", remedy="restore a backup")
    return data
