"""The values every room speaks of: messages, their blocks, tools and usage.

A message knows nothing of storage and nothing of wire formats, except that it carries the bytes it came as: what was
not changed is sent again exactly as it arrived.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.text import strings

Role: TypeAlias = Literal["system", "user", "assistant"]
Mark: TypeAlias = Literal["important", "pinned"]

NEUTRAL = "windowsill"
"""The format name of messages that were never in a provider's format."""

ORIGIN = "windowsill"
"""The field of a message's metadata that says what put it there; messages of others do not have it."""

MAX_DIGITS = 4_300
"""The digits of an integer that Python reads and writes as text unless a program raises its limit."""

_value = msgspec.json.Decoder()


def json_value(data: bytes | msgspec.Raw | str) -> Any:
    """Decode JSON with numbers of any size, as a model may write them.

    A number that no double holds becomes the integer of the same value, or its text where it is too long for one.
    """
    try:
        return _value.decode(data)
    except msgspec.ValidationError:
        # Only the range of a number is ever checked here.
        text = data if isinstance(data, str) else str(data, "utf-8")
    try:
        return json.loads(text, parse_float=_number, parse_int=_number, parse_constant=_no_constant)
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None


def _number(text: str) -> int | float | str:
    mantissa, _, exponent = text.lower().partition("e")
    if not exponent and "." not in mantissa:
        return int(text) if len(text) <= MAX_DIGITS else text
    if math.isfinite(value := float(text)):
        return value
    # A longer exponent would make a longer integer.
    exact = Decimal(text) if len(exponent) <= len("+0000") else Decimal("NaN")
    fits = exact.is_finite() and exact.adjusted() < MAX_DIGITS - 1 and exact == exact.to_integral_value()
    return int(exact) if fits else text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


RESPONSE = "response"
"""The key under which a message keeps the id of the response it came in, where requests may refer to it."""

KEEP = "keep"
"""The field of the metadata of dynamic context that says how long it is shown: for its `turn`, or in the `history`."""


class Origin(StrEnum):
    """The part of Windowsill that put a message into the conversation."""

    MARKER = "marker"
    """Says what was hidden, written by code."""
    NOTICE = "notice"
    """Says how many messages were hidden."""
    SUMMARY = "summary"
    """Says what was hidden, written by a writer or a person."""
    DYNAMIC = "dynamic"
    """The context that a caller gave for one request."""
    RECALLED = "recalled"
    """Repeats hidden lines that the search found: finding it again would feed the search with itself."""
    STATE = "state"
    """Tells the layered state."""
    ENGINE = "engine"
    """The agent loop's own words to the model."""


class _Block(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    raw: bytes | None = None
    """The block's JSON as it came, in the format of its message; `None` when it was made here."""


class Text(_Block, frozen=True, kw_only=True, tag="text"):
    """Plain words."""

    text: str


class Reasoning(_Block, frozen=True, kw_only=True, tag="reasoning"):
    """A model's reasoning, with the provider's opaque proof kept byte for byte."""

    text: str = ""
    signature: str | None = None
    data: str | None = None
    """Encrypted or redacted reasoning that only the provider can read."""


class ToolUse(_Block, frozen=True, kw_only=True, tag="tool_use"):
    """A call the model asked for. `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"
    signature: str | None = None
    """The provider's opaque proof of the reasoning behind the call, where it signs calls."""
    type: str = ""
    """The provider's own kind of call where it has several; empty for an ordinary function."""

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as an object; text that is not a JSON object is kept under `_text`."""
        try:
            value = json_value(self.arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            value = None
        return value if isinstance(value, dict) else {"_text": self.arguments}


class OutputRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place where the whole of a tool output is kept."""

    id: str
    bytes: int = 0
    lines: int = 0


class ToolResult(_Block, frozen=True, kw_only=True, tag="tool_result"):
    """The answer of a tool to the call with the same id."""

    tool_use_id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    ref: OutputRef | None = None
    name: str | None = None
    """The tool that answered, where the format says so; `tool_use_id` alone ties the result to its call."""
    type: str = ""
    """The kind of call it answers; see `ToolUse.type`."""


class Image(_Block, frozen=True, kw_only=True, tag="image"):
    """A picture, inline (base64 `data`) or by `url` (a file id counts as one)."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None


class Document(_Block, frozen=True, kw_only=True, tag="document"):
    """A file the model reads: inline (base64 `data`), by `url`, or as plain `text`."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    text: str | None = None
    title: str | None = None


class Unknown(_Block, frozen=True, kw_only=True, tag="unknown"):
    """A block of a kind this version does not know. It is kept and passed on unchanged."""

    type: str = ""


Block: TypeAlias = Text | Reasoning | ToolUse | ToolResult | Image | Document | Unknown


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message, the same for every provider."""

    role: Role
    blocks: tuple[Block, ...] = ()
    id: str = ""
    """Given by the session when empty."""
    at: float = 0.0
    """Seconds since the epoch, UTC."""
    marks: frozenset[Mark] = frozenset()
    metadata: dict[str, Any] = {}
    format: str = NEUTRAL
    raw: bytes | None = None
    """The whole message as it came, in `format`; `None` when it was made here."""
    edited: bool = False
    """True when a view changed the blocks: `raw` then only gives the fields around them."""

    @property
    def text(self) -> str:
        """The words of the message, without reasoning, calls and results."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def origin(self) -> str:
        """The `Origin` of a message that Windowsill put in; empty for messages of others."""
        return str(self.metadata.get(ORIGIN, ""))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The tool calls this message makes, in order."""
        return tuple([block for block in self.blocks if isinstance(block, ToolUse)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results this message brings, in order."""
        return tuple([block for block in self.blocks if isinstance(block, ToolResult)])


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool definition."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    format: str = NEUTRAL
    raw: bytes | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens a provider reported for one call. `input` excludes what was read from or written to its cache."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the request, cached or not."""
        return self.input + self.cache_write + self.cache_read

    @property
    def total(self) -> int:
        """Everything the call used, its answer included."""
        return self.prompt + self.output


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request body, or a plain message list, taken apart.

    `system` is the system prompt where the format keeps it apart from the messages; its `raw` is the native JSON (a
    string or a list of blocks). `rest` are the other fields of the body as they came, in their order.
    """

    format: str
    messages: tuple[Message, ...] = ()
    system: Message | None = None
    tools: tuple[Tool, ...] = ()
    model: str | None = None
    rest: dict[str, msgspec.Raw] = {}
    bare: bool = False
    """True when the source was a message list rather than a request body."""


class Cleared(msgspec.Struct, frozen=True):
    """Tool results that a provider cleared by itself before its model read the request, the oldest first."""

    uses: int
    tokens: int = 0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's answer: the message, and what it used."""

    message: Message
    more: tuple[Message, ...] = ()
    """The messages that follow it, where one answer is several."""
    usage: Usage | None = None
    model: str | None = None
    stop_reason: str | None = None
    cleared: Cleared | None = None
    """The edits the provider made to the request, where it says so."""


def text_message(role: Role, text: str, **fields: Any) -> Message:
    """Make a message that holds nothing but `text`."""
    return Message(role=role, blocks=(Text(text=text),), **fields)


def text_of(blocks: Iterable[Block]) -> str:
    """Return the words of blocks: texts, documents and the results of tools, not reasoning, calls or pictures."""
    found = []
    for block in blocks:
        match block:
            case Text() | Document():
                found.append(block.text)
            case ToolResult():
                found.append(text_of(block.content))
    return found[0] or "" if len(found) == 1 else "\n".join([text for text in found if text])


def texts_in(block: Block) -> Iterator[str]:
    """Yield every text of a block: words, reasoning, the values of arguments, outputs, and what an unknown kind has."""
    match block:
        case Text() | Reasoning():
            yield block.text
        case ToolUse():
            yield from strings(block.input)
        case ToolResult():
            for inner in block.content:
                yield from texts_in(inner)
        case Document():
            yield block.text or ""
        case _ if block.raw is not None:
            try:
                yield from strings(msgspec.json.decode(block.raw))
            except (msgspec.DecodeError, RecursionError):
                return  # A block of an unknown kind may be nested too deeply to look into.


def text_length(blocks: tuple[Block, ...]) -> int:
    """Count the characters of text in these blocks, results, calls and reasoning included."""
    length = 0
    for block in blocks:
        match block:
            case Text() | Reasoning():
                length += len(block.text)
            case ToolUse():
                length += len(block.name) + len(block.arguments)
            case ToolResult():
                length += text_length(block.content)
            case Document():
                length += len(block.text or "")
            case _:
                length += len(block.raw or b"")
    return length


READ_TOOL = "tool_output_cache"
GREP_TOOL = "tool_output_cache_grep"
SEARCH_TOOL = "history_search"
MESSAGE_TOOL = "history_read"
STATUS_TOOL = "context_status"

WITHIN_REACH = f"; {SEARCH_TOOL} finds them"
"""Said of hidden messages in requests that offer the tool."""

OWN_TOOLS = frozenset({READ_TOOL, GREP_TOOL, SEARCH_TOOL, MESSAGE_TOOL, STATUS_TOOL})

ECHOES = frozenset({SEARCH_TOOL, MESSAGE_TOOL, STATUS_TOOL})
"""Those whose answers only repeat what the history holds; an output that is read may stand nowhere else in it."""
