"""The payload: a request in any format, with a report of how it came to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from windowsill import formats
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.rendering import Rendered
from windowsill.history.repair import Repair
from windowsill.history.view import Item, View
from windowsill.messages import Message, Tool, text_length
from windowsill.models import Model
from windowsill.models.prices import Prices, prices


class FoldMade(msgspec.Struct, frozen=True):
    """A fold that composing this payload made."""

    id: str
    kind: str
    strategy: str
    reason: str
    messages: int
    before: int
    after: int


class MessageWeight(msgspec.Struct, frozen=True):
    """What one message of the middle weighs."""

    id: str
    tokens: int
    share: float
    """Of the window."""
    density: float
    """Tokens per character."""


def weigh_item(view: View, item: Item, window: int) -> MessageWeight:
    """What an item weighs, for the report."""
    tokens = view.tokens(item)
    characters = text_length(view.read(item).blocks)
    return MessageWeight(
        id=item.id,
        tokens=tokens,
        share=round(tokens / window, 6),
        density=round(tokens / characters, 4) if characters else 0.0,
    )


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """What reducing did for one request."""

    pruned: bool = False
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    emergency: bool = False
    """The request was above its limit: nothing could wait."""
    runs: int = 0
    """How often the session was reduced since it was opened."""

    @property
    def messages_removed(self) -> int:
        """How many fewer messages are seen."""
        return self.messages_before - self.messages_after

    @property
    def tokens_removed(self) -> int:
        """How many fewer tokens they weigh."""
        return self.tokens_before - self.tokens_after


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload consists of and what was done to make it fit."""

    tokens: int
    """The whole request."""
    parts: dict[str, int]
    """Tokens of the system prompt, the tools, summaries and markers, the messages, and the framing around them."""
    limit: int
    window: int
    messages: int
    hidden: int
    """Messages of the history that the request does not show."""
    folds: tuple[FoldMade, ...] = ()
    repairs: tuple[Repair, ...] = ()
    weights: tuple[MessageWeight, ...] = ()
    notes: tuple[str, ...] = ()
    stable: int = 0
    """Tokens at the start that equal the request before: what a prompt cache can serve."""
    error: float | None = None
    """How far the count has been off for this model, in percent; `None` while nothing was reported."""
    exact: bool = False
    """Whether the model's own tokenizer did the counting."""
    statistics: Statistics = Statistics()
    """What reducing did."""


class Payload:
    """A request that fits, ready for any provider."""

    def __init__(
        self,
        *,
        tokens: int,
        tell: Callable[[], Report],
        format: str,
        model: Model | None,
        model_name: str | None,
        system: Message | None,
        tools: tuple[Tool, ...],
        rest: Mapping[str, msgspec.Raw],
        render: Callable[[str], Rendered],
        breakpoints: Breakpoints,
        headers: Mapping[str, str] | None = None,
        items: Sequence[Item] = (),
    ) -> None:
        self.tokens = tokens
        """What the whole request weighs."""
        self.folds: tuple[FoldMade, ...] = ()
        """What was folded to make it fit."""
        self.headers = dict(headers or {})
        """Headers that the request needs beside those of the client: pass them as `extra_headers`."""
        self._tell = tell
        self.format = format
        self.model = model
        self._model_name = model_name
        self._system = system
        self._tools = tools
        self._rest = rest
        self._render = render
        self._breakpoints = breakpoints
        self._bodies: dict[tuple[str, bool], bytes] = {}
        self._items = items

    @cached_property
    def report(self) -> Report:
        """What the request consists of and what was done to make it fit; put together when it is first asked for."""
        return self._tell()

    def body(self, format: str | None = None, *, cache: bool = True) -> bytes:
        """The request body as it is sent. `cache` adds cache breakpoints where the provider wants them stated."""
        name = formats.get(format or self.format).name
        key = (name, cache)
        if key not in self._bodies:
            self._bodies[key] = self._build(name, cache=cache)
        return self._bodies[key]

    def to(self, format: str | None = None, *, cache: bool = True) -> dict[str, Any]:
        """The request as keyword arguments for the provider's SDK. The dictionary is yours: change it as you like."""
        value: dict[str, Any] = msgspec.json.decode(self.body(format, cache=cache))
        return value

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        """The messages in the format they came in."""
        found: list[dict[str, Any]] = self.to(cache=False)[formats.get(self.format).spec.messages_field]
        return found

    @property
    def compacted(self) -> bool:
        """Whether something of the conversation is hidden or cut in this request."""
        return any(item.fold or item.cuts for item in self._items)

    @property
    def cost(self) -> float:
        """What sending it costs in dollars at list price, the part a prompt cache serves at its price; 0 if unknown."""
        if self.model is None:
            return 0.0
        price: Prices = prices(self.model)
        if not price.known:
            return 0.0
        fresh = self.tokens - self.report.stable
        return self.report.stable * price.cache_read + fresh * price.cache_write

    def _build(self, name: str, *, cache: bool) -> bytes:
        return build_body(
            formats.get(name),
            self._render(name),
            system=self._system,
            tools=self._tools,
            rest=self._rest if name == self.format else formats.shared_fields(self._rest, name, self._tools),
            model=self._model_name,
            breakpoints=self._breakpoints if cache else None,
        )


def build_body(
    format: formats.Format,
    rendered: Rendered,
    *,
    system: Message | None,
    tools: Sequence[Tool],
    rest: Mapping[str, msgspec.Raw],
    model: str | None,
    breakpoints: Breakpoints | None,
) -> bytes:
    """A request body from its parts. Messages are joined as they are, never encoded again."""
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
