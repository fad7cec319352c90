"""The scale: weighs messages, texts and tools for one model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, Tool, ToolResult, ToolUse, Unknown
from windowsill.tokens.calibration import Calibration
from windowsill.tokens.counters import Counter
from windowsill.tokens.framing import Framing, function_tokens, json_text
from windowsill.tokens.media import ImageRule, decoded_size, document_text, image_tokens, inline_data, page_tokens
from windowsill.tokens.weight import Kind, Weight, kind_of

ENVELOPE = 48
"""Bytes of the JSON around one block or message that was made here: braces, keys, role, type."""

OPAQUE_CHARS = 4
"""Characters for each token of encrypted reasoning, which nobody but the provider can count."""


class Scale:
    """Weighs for one model. A message is weighed once; `tokens` is what its weight means today."""

    def __init__(
        self, counter: Counter, *, framing: Framing, images: ImageRule, calibration: Calibration | None = None
    ) -> None:
        self.counter = counter
        self.framing = framing
        self.images = images
        self.calibration = calibration or Calibration.exact()
        self.name = f"{counter.name}/{framing.name}/{images.name}"
        """What a weight depends on: two scales of one name weigh alike."""
        self.frame = Weight(overhead=framing.reply)
        """What a request weighs before its first message."""

    def weigh(self, message: Message) -> Weight:
        """Weigh one message, its framing included."""
        pan = _Pan(self)
        for block in message.blocks:
            pan.put(block)
        size = pan.bytes + ENVELOPE if message.raw is None or message.edited else len(message.raw)
        return pan.weight(self.framing.message, size)

    def weigh_text(self, text: str) -> Weight:
        """Weigh bare text, without any framing."""
        pan = _Pan(self)
        pan.put_text(text, kind_of(text))
        return pan.weight(0, pan.bytes)

    def weigh_tools(self, tools: Sequence[Tool]) -> Weight:
        """Weigh the tool definitions of a request."""
        if not tools:
            return Weight()
        framing, size, tokens = self.framing, 0, 0
        for tool in tools:
            text = json_text(tool)
            size += len(text.encode()) if tool.raw is None else len(tool.raw)
            if framing.definitions == "functions":
                tokens += function_tokens(tool, self.counter)
            else:
                tokens += self.counter.count(text)
        return Weight(json=tokens, overhead=framing.tools + framing.tool * len(tools), bytes=size)

    def tokens(self, weight: Weight) -> int:
        """Estimate the tokens the provider will count for `weight`, rounded up."""
        return math.ceil(self.calibration.estimate(weight))

    def each(self, weights: Iterable[Weight]) -> list[int]:
        """Estimate the tokens of each of many weights, rounded up."""
        return list(map(math.ceil, self.calibration.estimates(weights)))


class _Pan:
    """Adds up the blocks of one message."""

    __slots__ = ("bytes", "cjk", "code", "count", "fixed", "json", "media", "media_bytes", "overhead", "prose", "scale")

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.count = scale.counter.count
        self.prose = self.code = self.json = self.cjk = 0
        self.fixed = self.overhead = self.bytes = self.media = self.media_bytes = 0

    def weight(self, overhead: int, size: int) -> Weight:
        return Weight(
            self.prose,
            self.code,
            self.json,
            self.cjk,
            self.fixed,
            self.overhead + overhead,
            size,
            self.media,
            self.media_bytes,
        )

    def put(self, block: Block) -> None:
        self.bytes += ENVELOPE
        if isinstance(block, Text):
            self.put_text(block.text, kind_of(block.text))
        elif isinstance(block, ToolResult):
            self.overhead += self.scale.framing.result
            self._put_id(block.tool_use_id)
            for inner in block.content:
                self.put(inner)
        elif isinstance(block, ToolUse):
            self._put_call(block)
        elif isinstance(block, Reasoning):
            self._put_reasoning(block)
        elif isinstance(block, Image):
            self._put_media(block, image_tokens(block, self.scale.images))
        elif isinstance(block, Document):
            self._put_document(block)
        else:
            self._put_unknown(block)

    def put_text(self, text: str, kind: Kind) -> None:
        self._add(self.count(text), kind)
        self.bytes += _wire_bytes(text)

    def _add(self, tokens: int, kind: Kind) -> None:
        if kind == "prose":
            self.prose += tokens
        elif kind == "code":
            self.code += tokens
        elif kind == "json":
            self.json += tokens
        else:
            self.cjk += tokens

    def _put_id(self, id: str) -> None:
        self.bytes += len(id)
        if self.scale.framing.ids:
            self.overhead += self.count(id)

    def _put_call(self, call: ToolUse) -> None:
        framing = self.scale.framing
        self.overhead += framing.call
        self._put_id(call.id)
        self.put_text(call.name, "json")
        self.bytes += _wire_bytes(call.arguments)
        values = _arguments(call) if framing.argument else None
        if values is None:
            self.json += self.count(call.arguments)
            return
        self.overhead += framing.argument * len(values)
        for value in values.values():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            self._add(self.count(text), "cjk" if kind_of(text) == "cjk" else "json")

    def _put_reasoning(self, block: Reasoning) -> None:
        if block.text:
            shown = self.count(block.text)
            self._add(
                math.ceil(shown * self.scale.framing.reasoning) if block.signature else shown, kind_of(block.text)
            )
            self.bytes += _wire_bytes(block.text)
        # A signature is proof, not prompt: providers bill the reasoning it signs, nothing for itself.
        self.bytes += len(block.signature or "")
        if block.data:
            self.overhead += -(-len(block.data) // OPAQUE_CHARS)
            self.bytes += len(block.data)

    def _put_document(self, block: Document) -> None:
        if block.title:
            self.put_text(block.title, kind_of(block.title))
        text = document_text(block)
        if text is None:
            self._put_media(block, page_tokens(block))
        else:
            self._add(self.count(text), kind_of(text))
            self.bytes += _wire_bytes(text)

    def _put_media(self, block: Image | Document, tokens: int) -> None:
        self.fixed += tokens
        self.media += 1
        self.media_bytes += media_size(block)
        self.bytes += len(block.data or "") + len(block.url or "")

    def _put_unknown(self, block: Unknown) -> None:
        if block.raw is not None:
            self.json += self.count(block.raw.decode("utf-8", "replace"))
            self.bytes += len(block.raw)


def _arguments(call: ToolUse) -> dict[str, Any] | None:
    try:
        return call.input
    except UnicodeEncodeError:  # half of a surrogate pair: no JSON, but still to be counted
        return None


def media_size(block: Image | Document) -> int:
    """Count the decoded bytes of a picture or document that travels inline; 0 for an address."""
    data = inline_data(block.data, block.url)
    return decoded_size(data) if data else 0


def _wire_bytes(text: str) -> int:
    """Count the bytes of a text inside JSON, quotes and escapes included."""
    try:
        return len(msgspec.json.encode(text))
    except UnicodeEncodeError:
        return len(msgspec.json.encode(text.encode("utf-8", "replace").decode()))
