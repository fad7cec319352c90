"""Render a view as a provider's messages, and remember the part that cannot change any more.

A settled part of the view (the assistant speaks next, or the user again after a request) renders to the same bytes
whatever comes later, so each turn renders only what is new. That is what prompt caches live on: where breakpoints pay,
and how much of a request equals the one before, is found here too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise
from operator import is_

import msgspec

from windowsill.history.repair import repair
from windowsill.history.repair_rules import Repair, describe
from windowsill.history.view import Item, View
from windowsill.messages import (
    OWN_TOOLS,
    READ_TOOL,
    SEARCH_TOOL,
    WITHIN_REACH,
    Block,
    Image,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolResult,
    json_value,
)
from windowsill.models import Demands
from windowsill.outputs.show import without_ref
from windowsill.providers import Format


class Rendered(msgspec.Struct, frozen=True):
    """A view in a provider's format: native messages as bytes, with what each weighs in tokens."""

    systems: tuple[Message, ...]
    """Leading system messages, where the format keeps them apart."""
    chunks: list[bytes]
    tokens: list[int]
    repairs: tuple[Repair, ...]
    extra: int
    """Tokens that repairs added to, or took from, what the view weighs."""
    settled: int = 0
    """Chunks at the start that stay the same until the view is edited."""
    edits: int = -1


class _Part(msgspec.Struct, frozen=True):
    """Items `start` to `stop` rendered."""

    start: int
    stop: int
    chunks: list[bytes] = []
    tokens: list[int] = []
    repairs: list[Repair] = []
    extra: int = 0
    used: frozenset[str] = frozenset()


class Renderer:
    """Renders one session's view for one format."""

    def __init__(
        self,
        format: Format,
        demands: Demands = Demands(),  # noqa: B008 - it cannot be changed
        *,
        own_tools: Set[str] = frozenset(),
        continued: bool = False,
    ) -> None:
        self.format = format
        self.demands = demands
        """The demands of the model beyond the format."""
        self.own_tools = own_tools
        """Show refs of outputs: only where the tool that reads them is offered."""
        self.continued = continued
        """The provider keeps what came before the messages of the request."""
        self._prompt_hash = b""
        self._forget()

    def _forget(self) -> None:
        self._edits = -1
        self._start = 0
        self._done = 0
        self._systems: tuple[Message, ...] = ()
        self._chunks: list[bytes] = []
        self._tokens: list[int] = []
        self._repairs: list[Repair] = []
        self._extra = 0
        self._used: set[str] = set()
        self._tail = _Part(0, 0)

    def render(self, view: View, prompt_hash: bytes = b"") -> Rendered:
        """Render the view for a request with this system prompt and these tools."""
        if self.demands.bound_reasoning and prompt_hash != self._prompt_hash:
            self._prompt_hash, self._edits = prompt_hash, -1
        if self._edits != view.edits or not (self._chunks or self._tail.chunks):
            self._begin(view)
        boundaries = self._boundaries(view.items)
        if self._done == self._start and len(boundaries) > 1:
            # The head holds markers, which are joined to the task: alone it is mended, all after it looked through.
            self._settle(self._part(view, self._done, boundaries[0]))
        if boundaries:
            self._settle(self._part(view, self._done, boundaries[-1]))
        tail = self._tail = self._part(view, self._done, len(view.items))
        return Rendered(
            systems=self._systems,
            chunks=self._chunks + tail.chunks,
            tokens=self._tokens + tail.tokens,
            repairs=(*self._repairs, *tail.repairs),
            extra=self._extra + tail.extra,
            settled=len(self._chunks),
            edits=view.edits,
        )

    def _settle(self, part: _Part) -> None:
        self._chunks += part.chunks
        self._tokens += part.tokens
        self._repairs += part.repairs
        self._extra += part.extra
        self._used |= part.used
        self._done = part.stop

    def _begin(self, view: View) -> None:
        self._forget()
        self._edits = view.edits
        if self.format.rules.system_apart and not self.format.rules.system_inside:
            leading = view.leading()
            self._systems = tuple(view.read(item) for item in view.items[:leading])
            self._start = self._done = leading

    def _boundaries(self, items: list[Item]) -> list[int]:
        """Find where nothing before can change any more: the assistant speaks next, or the user once more.

        Calls before it were sent, answered or not: what comes later for them is told at its own place.
        """
        rest = enumerate(items[self._done :], self._done)
        shown = [(index, item.role) for index, item in rest if not (item.fold and item.is_empty)]
        found = [index for (_, before), (index, role) in pairwise(shown) if role == "assistant" != before]
        sent = self._tail.stop
        if self._done < sent < min([*found, len(items)]) and self._stand_apart(items[sent - 1], items[sent]):
            found.insert(0, sent)
        return found

    def _stand_apart(self, before: Item, item: Item) -> bool:
        """Tell whether two messages of the user, with a request between them, stay two whatever they hold."""
        rules = self.format.rules
        users = before.role == item.role == "user" and not before.is_empty and not item.is_empty
        return users and item.sent and (rules.takes_neighbours or not rules.alternate)

    def _without_refused_reasoning(self, view: View, item: Item, message: Message) -> Message:
        """Leave out reasoning that the provider would refuse: all of it, or what had another past."""
        if item.role != "assistant":
            return message
        unwanted = self.demands.no_reasoning and self.format.spec.plain_reasoning
        unwanted = unwanted or item.last <= self.demands.refused
        if not unwanted and not (self.demands.bound_reasoning and view.edited_before(item, self._prompt_hash)):
            return message
        kept = tuple(block for block in message.blocks if not isinstance(block, Reasoning))
        return (
            message if len(kept) == len(message.blocks) else msgspec.structs.replace(message, blocks=kept, edited=True)
        )

    def _without_hints(self, item: Item, message: Message) -> Message:
        """Leave out how to read what is not shown where the model has no tool for it."""
        if item.fold:
            return message if SEARCH_TOOL in self.own_tools else without_hint(message)
        return without_refs(message) if item.results and READ_TOOL not in self.own_tools else message

    def _part(self, view: View, start: int, stop: int) -> _Part:
        if start == self._tail.start and stop == self._tail.stop:
            # What was last rendered as the tail of the view is now settled: the same items give the same bytes.
            return self._tail
        rest = enumerate(view.items[start:stop], start)
        places = [place for place, item in rest if not (item.fold and item.is_empty)]
        items = [view.items[place] for place in places]
        shown = [view.read(item) for item in items]
        plain = [self._without_hints(item, message) for item, message in zip(items, shown, strict=True)]
        messages = [
            self._without_refused_reasoning(view, item, message) for item, message in zip(items, plain, strict=True)
        ]
        told: list[Repair] = []
        if self.demands.no_images:
            seen, messages = messages, [without_images(message) for message in messages]
            changed = [place for place, message in enumerate(messages) if message is not seen[place]]
            what = "a picture is told in words: the model takes none"
            told = [Repair(kind="image_told", where=place, id=items[place].id, what=what) for place in changed]
        repaired = repair(
            messages,
            self.format.rules,
            sent=[index for index, item in enumerate(items) if item.sent],
            used=self._used,
            first=start == self._start,
            continued=self.continued,
        )
        weights = view.each(items)
        chunks: list[bytes] = []
        tokens: list[int] = []
        extra = 0
        left_out = set(range(len(items)))
        for message, sources in zip(repaired.messages, repaired.sources, strict=True):
            left_out.difference_update(sources)
            planned = sum([weights[index] for index in sources])
            same = len(sources) == 1 and message is shown[sources[0]]
            actual = planned if same else view.tokens_of(view.weigh(message))
            extra += actual - planned
            native = self.format.render_message(message)
            chunks += native
            tokens += [actual] + [0] * (len(native) - 1) if native else []
        extra -= sum([weights[index] for index in left_out])
        # Two messages of one role that stand together only because of a marker between them are no news.
        found = [
            msgspec.structs.replace(each, where=where)
            for each, where in ((each, places[each.where]) for each in (*told, *repaired.repairs))
            if each.kind != "role_order_mended"
            or not any(item.fold for item in view.items[max(0, where - 1) : where + 1])
        ]
        return _Part(start, stop, chunks, tokens, found, extra, repaired.ids)


def without_images(message: Message) -> Message:
    """Put words in the place of pictures, for a model that takes none."""
    changed = _changed(message, _without_images)
    texts = [block.text for block in changed.blocks if isinstance(block, Text)]
    if changed is message or len(texts) < len(changed.blocks):
        return changed
    # One text: servers of such models often take no list of parts.
    return msgspec.structs.replace(changed, blocks=(Text(text="\n\n".join(texts)),))


def _changed(message: Message, change: Callable[[Block], Block]) -> Message:
    """Return a message with each block changed; the same object where nothing is."""
    blocks = tuple(map(change, message.blocks))
    same = all(map(is_, blocks, message.blocks))
    return message if same else msgspec.structs.replace(message, blocks=blocks, edited=True)


def _without_images(block: Block) -> Block:
    if isinstance(block, Image):
        return Text(text=f"{describe(block)} is not shown: this model takes no pictures")
    if isinstance(block, ToolResult) and any(isinstance(inner, Image) for inner in block.content):
        return msgspec.structs.replace(block, content=tuple(map(_without_images, block.content)), raw=None)
    return block


def own_tools(tools: Sequence[Tool]) -> frozenset[str]:
    """Return the names of Windowsill's own tools among these: what they can read is named in the messages."""
    return OWN_TOOLS.intersection(tool.name for tool in tools)


def without_hint(message: Message) -> Message:
    """Take out of a stand-in that what it stands for can be found."""
    return _changed(message, _without_hint)


def _without_hint(block: Block) -> Block:
    if not isinstance(block, Text) or WITHIN_REACH not in block.text:
        return block
    return Text(text=block.text.replace(WITHIN_REACH, "", 1))


def without_refs(message: Message) -> Message:
    """Take out of trimmed outputs how to read them on."""
    return _changed(message, _without_ref)


def _without_ref(block: Block) -> Block:
    if not isinstance(block, ToolResult) or block.ref is None:
        return block
    texts = {place: inner.text for place, inner in enumerate(block.content) if isinstance(inner, Text)}
    plain = {place: without_ref(text, block.ref.id) for place, text in texts.items()}
    if plain == texts:
        # What says nothing of refs is sent as it came.
        return block
    content = tuple(Text(text=plain[place]) if place in plain else inner for place, inner in enumerate(block.content))
    return msgspec.structs.replace(block, content=content, raw=None)


MARK = {"type": "ephemeral"}
_MARKED = b'"cache_control":'

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw])


class _Kind(msgspec.Struct):
    type: str | None = None


MOST = 4
"""More breakpoints than these are refused."""

LOOK_BACK = 20
"""A provider looks for an earlier entry at most this many blocks before a breakpoint."""


class Breakpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Decides where breakpoints pay: by the smallest prefix a cache takes, and where the request before ended."""

    minimum: int = 1_024
    system: int = 0
    """Tokens of the system prompt and the tools."""
    head: int = 0
    """Messages at the start that survive the next fold: up to the task."""
    head_blocks: int = 0
    """Blocks of the last of them: what a marker joined to the task says changes with the next fold."""
    previous: int = 0
    """Messages that the request before had in common with this one."""
    passing: int = 0
    """Blocks at the end that the next turn does not have: a breakpoint before them keeps the rest cached."""

    def place(
        self,
        system: bytes | None,
        chunks: list[bytes],
        tools: Sequence[bytes],
        rest: dict[str, msgspec.Raw],
        tokens: Sequence[int],
    ) -> tuple[bytes | None, list[bytes], dict[str, msgspec.Raw]]:
        """Put breakpoints into the parts. Whoever states their own keeps the latest of them: then none are added."""
        fixed = sum(part.count(_MARKED) for part in (system or b"", *tools)) + ("cache_control" in rest)
        if fixed or _MARKED in b"".join(chunks):
            return system, _latest_marks(chunks, MOST - fixed), rest
        chunks = list(chunks)
        if system is not None and self.system >= self.minimum:
            system = _mark_system(system)
        if 0 < self.head < len(chunks) and self.system + sum(tokens[: self.head]) >= self.minimum:
            chunks[self.head - 1] = mark_message(chunks[self.head - 1], self.head_blocks)
        if self.passing and len(chunks) > max(1, self.head):
            count = len(_blocks(_fields(chunks[-1]))) - self.passing
            place = -1 if count > 0 else -2
            chunks[place] = mark_message(chunks[place], max(0, count))
        elif (
            self.head < self.previous < len(chunks)
            and sum(len(_blocks(_fields(chunk))) for chunk in chunks[self.previous :]) > LOOK_BACK
        ):
            chunks[self.previous - 1] = mark_message(chunks[self.previous - 1])
        if self.system + sum(tokens) >= self.minimum:
            # Automatic: the provider moves this one along with the last block, so no message has to change for it.
            rest = {**rest, "cache_control": msgspec.Raw(msgspec.json.encode(MARK))}
        return system, chunks, rest


def _latest_marks(chunks: list[bytes], most: int) -> list[bytes]:
    """Keep the latest marks: a client that moves its mark along has set one in each message."""
    kept = list(chunks)
    for index in range(len(chunks) - 1, -1, -1):
        if marks := chunks[index].count(_MARKED):
            most -= marks
            if most < 0:
                kept[index] = _unmarked(chunks[index])
    return kept


def _unmarked(value: bytes) -> bytes:
    """Take marks off a message or a part of it, but not off what a tool was called with."""
    if value[:1] == b"[":
        return b"[" + b",".join(_unmarked(bytes(each)) for each in _items.decode(value)) + b"]"
    if value[:1] != b"{":
        return value
    fields = {key: each for key, each in _fields(value).items() if key != "cache_control"}
    if "content" in fields:
        fields["content"] = msgspec.Raw(_unmarked(bytes(fields["content"])))
    return msgspec.json.encode(fields)


def _mark_system(system: bytes) -> bytes:
    blocks = _blocks({"content": msgspec.Raw(system)})
    return msgspec.json.encode([*blocks[:-1], _marked(blocks[-1])]) if blocks else system


def mark_message(chunk: bytes, blocks: int = 0) -> bytes:
    """Put a breakpoint on the last block of a message, or on block number `blocks`, if it can carry one."""
    message = _fields(chunk)
    content = _blocks(message)
    place = min(blocks or len(content), len(content)) - 1
    if place < 0 or msgspec.json.decode(content[place], type=_Kind).type in {"thinking", "redacted_thinking"}:
        return chunk
    content[place] = _marked(content[place])
    return msgspec.json.encode({**message, "content": content})


def _marked(block: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({**_fields(block), "cache_control": MARK}))


def same_start(before: Sequence[bytes], now: Sequence[bytes], known: int = 0) -> int:
    """Count the messages at the start that are the same; `known` of them need no look."""
    last = min(len(before), len(now))
    return next((index for index in range(known, last) if before[index] != now[index]), max(known, last))


def same_blocks(old: bytes, new: bytes) -> float:
    """Return the share of a message that is the same blocks at its start: caches see blocks, not messages."""
    before, now = _fields(old), _fields(new)
    if before.get("role") != now.get("role"):
        return 0.0
    blocks = [bytes(each) for each in _blocks(now)]
    pairs = zip((bytes(each) for each in _blocks(before)), blocks, strict=False)
    # Spaces between the words of JSON make no other block.
    count = sum(1 for _ in itertools.takewhile(lambda pair: json_value(pair[0]) == json_value(pair[1]), pairs))
    return sum(map(len, blocks[:count])) / sum(map(len, blocks)) if blocks else 0.0


def _blocks(message: Mapping[str, msgspec.Raw]) -> list[msgspec.Raw]:
    """Return the blocks of a message as they came: what is marked or compared is never written anew."""
    content = message.get("content", msgspec.Raw(b"null"))
    start = bytes(content)[:1]
    if start == b'"':
        return [msgspec.Raw(b'{"type":"text","text":' + bytes(content) + b"}")]
    return _items.decode(content) if start == b"[" else []
