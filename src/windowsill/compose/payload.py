"""The payload: a request that fits, its parts, its body in any format, and a report of how it came to be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any

import msgspec

from windowsill import providers
from windowsill.budget import Budget
from windowsill.compose.composition import Composition, composition_of, weigh_parts
from windowsill.compose.render import Breakpoints, Rendered, Renderer, own_tools, same_blocks, same_start
from windowsill.history.head import prompt_hash
from windowsill.history.repair import drop_open_calls, is_blank
from windowsill.history.repair_rules import OPENING, Repair
from windowsill.history.view import Item, View, sum_weights, units
from windowsill.messages import Message, Text, Tool, json_value, text_length, text_message
from windowsill.models import Demands, Model
from windowsill.models.prices import prices
from windowsill.providers import converse
from windowsill.strategies import Strategy
from windowsill.summaries import Shared
from windowsill.text import common_start, count_of, printable_line
from windowsill.tokens import Scale, Weight

SHOWN = 20
"""Characters on each side of a difference that are shown."""


class RequestParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that are never cut, read and weighed: system prompt, tool definitions, further fields."""

    key: object
    """Tells these parts from others, before they are read."""
    system: Message | None
    tools: tuple[Tool, ...]
    rest: dict[str, msgspec.Raw]
    system_weight: Weight
    tools_weight: Weight
    schema_weight: Weight
    """The weight of a schema for the answer among the further fields."""
    max_output: int | None
    """The tokens that the further fields allow the answer, where they say so."""
    ids: dict[str, str]
    """The blob id of each part."""
    blobs: dict[str, bytes]
    """Blob id -> bytes, so that the request can be built again."""


def output_room(stated: int | None, model: Model) -> int | None:
    """Return the room for an answer that a request limits to so many tokens; `None` leaves it to the model."""
    # A limit as large as the window does not mean that the prompt gets no room.
    return stated if stated is not None and stated < model.window else None


def parts_key(system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: str) -> object:
    """Return what tells these parts from others."""
    return format, _encode(system), tuple(_encode(tool) for tool in tools), _encode(dict(rest))


def read_parts(
    system: Any,
    tools: Sequence[Any],
    rest: Mapping[str, Any],
    format: providers.Format,
    scale: Scale,
    key: object = None,
) -> RequestParts:
    """Read and weigh the parts, in whatever form they were given."""
    prompt = system if system is None or isinstance(system, Message) else format.read_system(system)
    if prompt is not None and all(isinstance(block, Text) and is_blank(block.text) for block in prompt.blocks):
        # Providers refuse an empty one.
        prompt = None
    read = providers.read_tools(tools)
    fields = {name: msgspec.Raw(_encode(value)) for name, value in rest.items()}
    layout = providers.tool_layout(tools, format.name)
    if layout is not None:
        fields.setdefault("tools", layout)
    named = {"system": prompt, "tools": read, "rest": fields}
    encoded = {name: msgspec.json.encode(part) for name, part in named.items() if part}
    ids = {name: hashlib.sha256(data).hexdigest()[:32] for name, data in encoded.items()}
    return RequestParts(
        key=key,
        system=prompt,
        tools=read,
        rest=fields,
        system_weight=scale.weigh(prompt) if prompt is not None else Weight(),
        tools_weight=scale.weigh_tools(read),
        schema_weight=sum_weights(
            scale.weigh_text(bytes(value).decode())
            for name, value in fields.items()
            # A schema, which the model reads, as in `response_format` and `text`.
            if name != "tools" and b"chema" in bytes(value)
        ),
        max_output=providers.answer_limit(fields) if fields else None,
        ids=ids,
        blobs={ids[name]: data for name, data in encoded.items()},
    )


def first_difference(before: RequestParts, after: RequestParts) -> str:
    """Say where the system prompt or the tools of two requests first differ; empty where they are the same."""
    if before is after or all(before.ids.get(name) == after.ids.get(name) for name in ("system", "tools")):
        return ""
    one, other = (parts.system.text if parts.system is not None else "" for parts in (before, after))
    if one != other:
        at = common_start(one, other)
        shown = printable_line(other[max(0, at - SHOWN) : at + SHOWN])
        return f"the system prompt changes at character {at + 1:,} ({shown!r})"
    tools = zip_longest(before.tools, after.tools)
    changed = next((now or then for then, now in tools if then != now), None)
    return f"the definition of tool {changed.name!r} changes" if changed is not None else "the system prompt changes"


def _begin_alike(one: RequestParts, other: RequestParts) -> bool:
    """Tell whether a prompt cache takes two requests for the same before their messages."""
    if one.ids == other.ids:
        return True
    cached = [{k: bytes(v) for k, v in parts.rest.items() if k not in providers.UNCACHED} for parts in (one, other)]
    return all(one.ids.get(part) == other.ids.get(part) for part in ("system", "tools")) and cached[0] == cached[1]


MOST_CHANGES = 3
"""Requests in a row that begin anew before it is told: a new phase or another tool is no mistake."""


class RequestBefore:
    """The request before, with which the next one is compared: a prompt cache serves what both begin with."""

    def __init__(self) -> None:
        self.changed = 0
        """Requests in a row whose start was another one than before."""
        self._before: tuple[Rendered, RequestParts] | None = None
        self._tokens = 0

    def follow(self, rendered: Rendered, parts: RequestParts, tokens: int) -> str:
        """Take the next request in its place; say so where no request begins as the one before, time after time."""
        place = first_difference(self._before[1], parts) if self._before is not None else ""
        self.changed = self.changed + 1 if place else 0
        self._before, self._tokens = (rendered, parts), tokens
        told = self.changed >= MOST_CHANGES
        return f"no prompt cache can serve these requests: {place}, each time" if told else ""

    def common_start(self, spec: RequestSpec, rendered: Rendered) -> tuple[int, int]:
        """Count the messages, and the tokens, at the start that equal the request before."""
        if self._before is None or not _begin_alike(self._before[1], spec.parts):
            # The system prompt and the tools stand at the start: after other ones nothing is the same.
            return 0, 0
        before = self._before[0]
        known = before.settled if before.edits == rendered.edits else 0
        common = same_start(before.chunks, rendered.chunks, known)
        stable = spec.budget.fixed + sum(rendered.tokens[:common])
        if common < min(len(before.chunks), len(rendered.chunks)):
            # Of the first message that differs, the same blocks.
            stable += int(rendered.tokens[common] * same_blocks(before.chunks[common], rendered.chunks[common]))
        return common, min(stable, self._tokens)


def _encode(value: Any) -> bytes:
    if isinstance(value, (Message, Tool)):
        return value.raw if value.raw is not None else msgspec.json.encode(value)
    return providers.encode(value)


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is to fit its budget."""

    parts: RequestParts
    format: str
    demands: Demands
    """The demands of the model on messages beyond the format."""
    budget: Budget
    strategy: Strategy
    model_name: str | None = None
    max_output: int | None = None
    stateless: bool = False
    """The caller keeps no session and sends the whole list again: cuts fall at multiples of `Budget.step`, so that many
    calls begin alike, and nothing is prepared for later."""
    goal: int = 0
    """Reduce to this many tokens, whatever the marks are; 0 for the marks."""
    now: bool = False
    """A caller asked for the reduction: it waits for texts that a model writes."""

    @property
    def prompt_hash(self) -> bytes:
        """The fingerprint of the system prompt and the tools."""
        return prompt_hash(self.parts.ids)

    @property
    def own_tools(self) -> frozenset[str]:
        """The tools with which the model reads what is not shown."""
        return own_tools(self.parts.tools)

    @property
    def continued(self) -> bool:
        """True when the provider keeps what came before the messages."""
        return providers.get(self.format).continues(self.parts.rest)

    def renderer(self, format: str | None = None) -> Renderer:
        """Make what renders messages for this request, in its format or another."""
        target = providers.get(format or self.format, self.demands)
        continued = target.name == self.format and self.continued
        return Renderer(target, self.demands, own_tools=self.own_tools, continued=continued)

    def shared(self, view: View) -> Shared:
        """Build the request as it would be sent now, whether it fits or not: a summary can be asked for at its end.

        Calls that are still running are left out: who reads it must not take them for calls that failed.
        """
        body = build_body(
            providers.get(self.format),
            self.renderer().render(_without_open_calls(view), self.prompt_hash),
            system=self.parts.system,
            tools=self.parts.tools,
            rest=self.parts.rest,
            model=self.model_name,
            demands=self.demands,
        )
        return Shared(format=self.format, body=body)


def _without_open_calls(view: View) -> View:
    """Return the view without the calls at its end that are still running."""
    last = units(view.items)[-1:]
    if not last or not last[0].open:
        return view
    tail = view.items[last[0].start :]
    shown = {
        item.seq: message
        for item, message in zip(tail, drop_open_calls([view.read(item) for item in tail]), strict=True)
    }
    twin = view.copy()
    twin.items = [item for item in view.items if shown.get(item.seq, item) is not None]
    twin.read = lambda item: shown.get(item.seq) or view.read(item)
    return twin


def build_body(
    format: providers.Format,
    rendered: Rendered,
    *,
    system: Message | None,
    tools: Sequence[Tool],
    rest: Mapping[str, msgspec.Raw],
    model: str | None,
    demands: Demands,
    breakpoints: Breakpoints | None = None,
) -> bytes:
    """Build a request body from its parts. Messages are joined as they are, never encoded again."""
    systems = [message for message in (system, *rendered.systems) if message is not None]
    native = format.render_system(systems) if systems else None
    chunks = rendered.chunks
    if native is not None and not format.rules.system_apart:
        chunks, native = [native, *chunks], None
    definitions = [format.render_tool(tool) for tool in tools if providers.crosses(tool, format.name)]
    fields = format.fit_fields(dict(rest), chunks, bound_reasoning=demands.bound_reasoning)
    if breakpoints is not None and format.rules.cache_markers:
        native, chunks, fields = breakpoints.place(native, chunks, definitions, fields, rendered.tokens)
    return format.render_body(messages=chunks, system=native, tools=definitions, model=model, rest=fields)


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
    """The weight of one message of the middle."""

    id: str
    tokens: int
    share: float
    """Of the window."""
    density: float
    """Tokens per character."""


def weigh_item(view: View, item: Item, window: int) -> MessageWeight:
    """Weigh an item for the report."""
    tokens = view.tokens(item)
    characters = text_length(view.read(item).blocks)
    return MessageWeight(
        id=item.id,
        tokens=tokens,
        share=round(tokens / window, 6),
        density=round(tokens / characters, 4) if characters else 0.0,
    )


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of reducing for one request."""

    pruned: bool = False
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    emergency: bool = False
    """The request was above its limit: nothing could wait."""
    runs: int = 0
    """Requests that reduced the session since it was opened."""

    @property
    def messages_removed(self) -> int:
        """The messages that are no longer seen."""
        return self.messages_before - self.messages_after

    @property
    def tokens_removed(self) -> int:
        """The tokens that they had."""
        return self.tokens_before - self.tokens_after


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a payload, and the steps that made it fit."""

    tokens: int
    """The whole request."""
    parts: dict[str, int]
    """Tokens of the system prompt, the tools (with a schema of the answer), summaries and markers, the messages, the
    framing around them, and what only the provider saw of the last request (`unseen`): tools given to its SDK, files by
    id, text of its own."""
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
    """The error of the last totals for this model against those reported, in percent; `None` while none was."""
    exact: bool = False
    """The model's own tokenizer did the counting."""
    statistics: Statistics = Statistics()
    decision: dict[str, float | str] = {}
    """The decision, for this request, of a strategy that decides by figures, waiting included, with its figures."""

    def __str__(self) -> str:
        """Say in a few lines what is in the request and what was done for it."""
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in self.parts.items() if tokens)
        shown = count_of(self.messages, "message")
        lines = [
            f"{self.tokens:,} of {self.limit:,} tokens ({parts}); the window has {self.window:,}",
            f"{shown} shown, {self.hidden:,} hidden; {count_of(self.stable, 'token')} as the last request began",
            *(f"fold {fold.id}: {fold.kind} by {fold.strategy}, {count_of(fold.messages, 'message')}: {fold.reason}"
              for fold in self.folds),
            *(f"repair: {repair.what}" for repair in self.repairs),
            *(f"note: {note}" for note in self.notes),
        ]  # fmt: skip
        if self.decision and not self.folds:
            lines.append(f"{self.decision['action']}: {self.decision['why']}")
        return "\n".join(lines)


class FitResult(msgspec.Struct):
    """A view that fits, rendered, and what was done for it."""

    folds: list[FoldMade] = []
    notes: list[str] = []
    middle: tuple[Item, ...] = ()
    """The items that the strategy weighed."""
    decision: dict[str, float | str] = {}
    rendered: Rendered = Rendered((), [], [], (), 0)
    statistics: Statistics = Statistics()

    def note(self, *notes: str) -> None:
        """Take notes for the report, each once."""
        self.notes.extend(note for note in dict.fromkeys(notes) if note not in self.notes)


class Payload:
    """A request that fits, ready for any provider."""

    def __init__(
        self,
        spec: RequestSpec,
        result: FitResult,
        view: View,
        *,
        tokens: int,
        stable: int,
        model: Model,
        exact: bool,
        error: float | None,
        unseen: int,
        breakpoints: Breakpoints,
        headers: Mapping[str, str],
    ) -> None:
        """Make it of a view that nobody changes any more, so that it stays what it was when the session moves on."""
        self.tokens = tokens
        """The tokens of the whole request."""
        self.folds = tuple(result.folds)
        """The folds that were made so that it fits."""
        self.headers = dict(headers)
        """Headers that the request needs beside those of the client: pass them as `extra_headers`."""
        self.format = spec.format
        self.model = model
        self._spec = spec
        self._result = result
        self._view = view
        self._stable = stable
        self._exact = exact
        self._error = error
        self._unseen = unseen
        self._breakpoints = breakpoints
        self._bodies: dict[tuple[str, bool], bytes] = {}

    def __repr__(self) -> str:
        folds = f", {len(self.folds)} folds" if self.folds else ""
        limit, messages = self._spec.budget.limit, len(self._result.rendered.chunks)
        return f"<Payload for {self.model.name}: {messages} messages, {self.tokens:,} of {limit:,} tokens{folds}>"

    def _repr_html_(self) -> str:
        """Draw what fills the window, for a notebook."""
        return self.composition.to_html(repr(self)[1:-1])

    @property
    def composition(self) -> Composition:
        """The contents of the window when this is sent, by part."""
        view, parts, budget = self._view, self._spec.parts, self._spec.budget
        return composition_of(
            weigh_parts(view.items, view.task_seq()),
            view,
            msgspec.structs.replace(budget, window=self.model.window),
            system=view.scale.tokens(parts.system_weight),
            tools=view.scale.tokens(parts.tools_weight + parts.schema_weight),
            unseen=self._unseen,
        )

    def shows_all(self, count: int) -> bool:
        """Tell whether so many messages are shown, each as it was added: nothing is hidden, cut, mended or added."""
        items = [item for item in self._view.items if not item.is_empty]
        changed = self._result.rendered.repairs or any(item.fold or item.cuts for item in items)
        return len(items) == count and not changed

    @cached_property
    def report(self) -> Report:
        """The parts of the request and the steps that made it fit; put together when it is first asked for."""
        view, result, parts, scale = self._view, self._result, self._spec.parts, self._view.scale
        stand_ins = [item for item in view.items if item.fold]
        summaries = view.tokens(*stand_ins) if stand_ins else 0
        shares = {
            "system": scale.tokens(parts.system_weight),
            "tools": scale.tokens(parts.tools_weight + parts.schema_weight),
            "summaries": summaries,
        }
        if self._unseen:
            shares["unseen"] = self._unseen
        shares["messages"] = max(0, view.tokens() - summaries + result.rendered.extra)
        # The parts add up to the whole: the rest is framing and the overhead that was stated. What the parts are
        # rounded up by is taken from the messages.
        rest = self.tokens - sum(shares.values())
        shares["framing"] = max(0, rest)
        shares["messages"] += min(0, rest)
        return Report(
            tokens=self.tokens,
            parts=shares,
            limit=self._spec.budget.limit,
            window=self.model.window,
            messages=len(result.rendered.chunks),
            hidden=sum(item.hides for item in stand_ins),
            folds=self.folds,
            repairs=result.rendered.repairs,
            weights=tuple(weigh_item(view, item, self.model.window) for item in result.middle),
            notes=tuple(result.notes),
            stable=self._stable,
            error=self._error,
            exact=self._exact,
            statistics=result.statistics,
            decision=self.decision,
        )

    @cached_property
    def decision(self) -> dict[str, float | str]:
        """The act of a strategy that decides by figures, waiting included, and those figures."""
        return self._result.decision or self._spec.strategy.explain(self._view, self._spec.budget)

    def body(self, format: str | None = None, *, cache: bool = True) -> bytes:
        """Return the request body as it is sent; `cache` adds breakpoints where the provider wants them stated."""
        native, spec, parts = providers.get(format or self.format), self._spec, self._spec.parts
        same, key = native.name == spec.format, (native.name, cache)
        if key not in self._bodies:
            self._bodies[key] = build_body(
                native,
                self._result.rendered if same else self._render(native),
                system=parts.system,
                tools=parts.tools,
                rest=parts.rest if same else providers.shared_fields(parts.rest, native.name, parts.tools),
                model=spec.model_name,
                demands=spec.demands,
                breakpoints=self._breakpoints if cache else None,
            )
        return self._bodies[key]

    def _render(self, format: providers.Format) -> Rendered:
        """Render for another format; where system messages stand apart there may be nothing else to send."""
        rendered = self._spec.renderer(format.name).render(self._view, self._spec.prompt_hash)
        if rendered.chunks:
            return rendered
        chunks = format.render_message(text_message("user", OPENING))
        return msgspec.structs.replace(rendered, chunks=chunks, tokens=[0] * len(chunks))

    def to(self, format: str | None = None, *, cache: bool = True) -> dict[str, Any]:
        """Return the request as keyword arguments for the provider's SDK; the dictionary is yours to change.

        `"converse"` is for boto3's `client.converse` (Amazon Bedrock).
        """
        if format == converse.NAME:
            return converse.converse_request(self.to("anthropic", cache=cache))
        value: dict[str, Any] = json_value(self.body(format, cache=cache))
        return value

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        """The messages in the format they came in."""
        found: list[dict[str, Any]] = self.to(cache=False)[providers.get(self.format).spec.messages_field]
        return found

    @property
    def compacted(self) -> bool:
        """True when something of the conversation is hidden or cut in this request."""
        return any(item.fold or item.cuts for item in self._view.items)

    @property
    def cost(self) -> float:
        """The list price of sending it in dollars, the part a prompt cache serves at its price; 0 if unknown."""
        price = prices(self.model)
        if not price.known:
            return 0.0
        return self._stable * price.cache_read + (self.tokens - self._stable) * price.cache_write
