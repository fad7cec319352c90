"""The request that is to be sent: its fixed parts, its budget, and the body that they and the messages make."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill import formats
from windowsill.budget import Budget
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.rendering import Rendered, Rendering, shows_refs
from windowsill.history.history import terms
from windowsill.history.view import View
from windowsill.messages import Message, Tool
from windowsill.models import Demands
from windowsill.strategies import Strategy
from windowsill.tokens import Scale, Weight
from windowsill.writers import Shared


class RequestParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that are never cut, read and weighed: system prompt, tool definitions, further fields."""

    key: object
    """Tells these parts from others, before they are read."""
    system: Message | None
    tools: tuple[Tool, ...]
    rest: dict[str, msgspec.Raw]
    system_weight: Weight
    tools_weight: Weight
    blobs: dict[str, tuple[str, bytes]]
    """Name of the part -> (blob id, bytes), so that the request can be built again."""

    @property
    def ids(self) -> dict[str, str]:
        """The blob id of each part."""
        return {name: id for name, (id, _) in self.blobs.items()}


def parts_key(system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: str) -> object:
    """Return what tells these parts from others."""
    return format, _encode(system), tuple(_encode(tool) for tool in tools), _encode(dict(rest))


def read_parts(
    system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: formats.Format, scale: Scale, key: object = None
) -> RequestParts:
    """Read and weigh the parts, in whatever form they were given."""
    prompt = system if system is None or isinstance(system, Message) else format.read_system(system)
    read = formats.read_tools(tools)
    fields = {name: msgspec.Raw(_encode(value)) for name, value in rest.items()}
    layout = formats.tool_layout(tools, format.name)
    if layout is not None:
        fields.setdefault("tools", layout)
    named = {"system": prompt, "tools": read, "rest": fields}
    encoded = {name: msgspec.json.encode(part) for name, part in named.items() if part}
    return RequestParts(
        key=key,
        system=prompt,
        tools=read,
        rest=fields,
        system_weight=scale.weigh(prompt) if prompt is not None else Weight(),
        tools_weight=scale.weigh_tools(read),
        blobs={name: (hashlib.sha256(data).hexdigest()[:32], data) for name, data in encoded.items()},
    )


def _encode(value: Any) -> bytes:
    if isinstance(value, (Message, Tool)):
        return value.raw if value.raw is not None else msgspec.json.encode(value)
    return formats.encode(value)


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is to fit its budget."""

    parts: RequestParts
    format: str
    demands: Demands
    """What the model demands of messages beyond the format."""
    budget: Budget
    strategy: Strategy
    model_name: str | None = None
    max_output: int | None = None
    stateless: bool = False
    """The caller keeps no session and sends the whole list again: cuts fall at multiples of `Budget.step`, so that many
    calls begin alike, and nothing is prepared for later."""
    goal: int = 0
    """Reduce to this many tokens, whatever the marks are; 0 for the marks."""

    @property
    def prompt_hash(self) -> bytes:
        """The fingerprint of the system prompt and the tools."""
        return terms(self.parts.ids)

    @property
    def shows_refs(self) -> bool:
        """Whether messages say under which refs outputs are read: only if the model has the tool that follows them."""
        return shows_refs(self.parts.tools)

    def renderer(self, format: str | None = None) -> Rendering:
        """Make what renders messages for this request, in its format or another."""
        return Rendering(formats.get(format or self.format, self.demands), self.demands, refs=self.shows_refs)

    def shared(self, view: View) -> Shared:
        """Build the request as it would be sent now, whether it fits or not: a summary can be asked for at its end."""
        body = build_body(
            formats.get(self.format),
            self.renderer().render(view, self.prompt_hash),
            system=self.parts.system,
            tools=self.parts.tools,
            rest=self.parts.rest,
            model=self.model_name,
        )
        return Shared(format=self.format, body=body)


def build_body(
    format: formats.Format,
    rendered: Rendered,
    *,
    system: Message | None,
    tools: Sequence[Tool],
    rest: Mapping[str, msgspec.Raw],
    model: str | None,
    breakpoints: Breakpoints | None = None,
) -> bytes:
    """Build a request body from its parts. Messages are joined as they are, never encoded again."""
    systems = [message for message in (system, *rendered.systems) if message is not None]
    native = format.render_system(systems) if systems else None
    chunks = rendered.chunks
    if native is not None and not format.rules.system_apart:
        chunks, native = [native, *chunks], None
    definitions = [format.render_tool(tool) for tool in tools if formats.crosses(tool, format.name)]
    fields = dict(rest)
    if breakpoints is not None and format.rules.cache_markers:
        native, chunks, fields = breakpoints.place(native, chunks, definitions, fields, rendered.tokens)
    return format.render_body(messages=chunks, system=native, tools=definitions, model=model, rest=fields)
