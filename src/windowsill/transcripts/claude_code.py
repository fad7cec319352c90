"""Claude Code session files (`~/.claude/projects/*/*.jsonl`), as sessions in Anthropic's form.

Lines point to the line before them and form a tree: going back and compacting leave branches. One answer of the model
is several lines, one for each block; the results of its calls hang on the lines of those calls, so that a plain walk
along the parents would miss all but one of them. Kinds of lines that are not known are counted and skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from windowsill.errors import FormatError
from windowsill.providers.wire import any_decoder, decode, encode
from windowsill.transcripts.base import Charge, Line, Notes, Reader, RecordedSession, charge, decode_line, timestamp

SPEAKERS = frozenset({"user", "assistant"})

SYNTHETIC = "<synthetic>"
"""The model of answers that the agent wrote itself, such as errors of the API."""

BOUNDARY = "compact_boundary"

QUEUED = "queued_command"
"""A prompt that was typed while the model worked: an attachment, and seldom a line of the user."""

PLACED = frozenset({"uuid", "parentUuid", "sessionId", "session_id"})
"""Fields of which a line with a message has at least one."""


class _Written(msgspec.Struct, rename="camel", kw_only=True):
    """The fields of a line that say what it is and where it belongs."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    """`None` begins a conversation; lines printed for a program, rather than kept in a file, have no parents."""
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    agent_id: str | None = None
    parent_tool_use_id: str | None = msgspec.field(default=None, name="parent_tool_use_id")
    """The call that started the sub-agent, in lines printed for a program."""
    session_id: str | None = None
    printed_session: str | None = msgspec.field(default=None, name="session_id")
    timestamp: str | float | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")
    attachment: msgspec.Raw = msgspec.Raw(b"null")
    compact_metadata: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def starts_over(self) -> bool:
        return self.subtype == BOUNDARY or bool(self.is_compact_summary)

    @property
    def is_loose(self) -> bool:
        """True when it is in no chain, as attachments of earlier versions are."""
        return self.type not in SPEAKERS and self.uuid is None and not self.parent_uuid


class _Message(msgspec.Struct):
    content: str | list[msgspec.Raw]
    role: str = ""
    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct):
    type: str = ""
    tool_use_id: str | None = None


class _Attachment(msgspec.Struct):
    type: str = ""
    prompt: msgspec.Raw = msgspec.Raw(b"null")


_line_decoder = msgspec.json.Decoder(_Written)
_message_decoder = msgspec.json.Decoder(_Message)
_block_decoder = msgspec.json.Decoder(_Block)
_attachment_decoder = msgspec.json.Decoder(_Attachment)


def _message_of(line: _Written, number: int, notes: Notes) -> _Message | None:
    """Read the message of a line; `None`, and a note, if it is not part of the conversation."""
    if line.type not in SPEAKERS:
        queued = _queued_prompt(line)
        if queued is None:
            notes.skip(line.type or "untyped")
        return queued
    try:
        found = decode(_message_decoder, line.message)
    except FormatError as error:
        notes.trouble(number, f"message: {error.what}")
        return None
    found.role = found.role or line.type or ""
    if found.role not in SPEAKERS:
        notes.trouble(number, f"message: {found.role!r} is not a role of a conversation")
        return None
    if line.is_api_error_message or found.model == SYNTHETIC:
        notes.skip("synthetic")
        return None
    return found


def _queued_prompt(line: _Written) -> _Message | None:
    if line.type != "attachment":
        return None
    try:
        attached = _attachment_decoder.decode(line.attachment)
        found = _message_decoder.decode(b'{"role":"user","content":' + bytes(attached.prompt) + b"}")
    except msgspec.ValidationError:
        return None
    return found if attached.type == QUEUED and found.content else None


def _results(message: _Message) -> frozenset[str]:
    """Return the ids of the calls that a message answers; none if it says anything else."""
    if message.role != "user" or isinstance(message.content, str):
        return frozenset()
    try:
        blocks = [_block_decoder.decode(block) for block in message.content]
    except msgspec.ValidationError:
        return frozenset()
    ids = [block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id is not None]
    return frozenset(ids) if len(ids) == len(blocks) else frozenset()


def _preserved(line: _Written) -> tuple[list[str], str | None]:
    """Return the lines that a compaction kept: all of them, or the last and the first."""
    metadata = any_decoder.decode(line.compact_metadata)
    fields = metadata if isinstance(metadata, dict) else {}
    messages, segment = fields.get("preservedMessages"), fields.get("preservedSegment")
    uuids = messages.get("uuids") if isinstance(messages, dict) else None
    if isinstance(uuids, list) and uuids:
        return [each for each in uuids if isinstance(each, str)], None
    head, tail = (segment.get(key) if isinstance(segment, dict) else None for key in ("headUuid", "tailUuid"))
    return ([tail], head) if isinstance(head, str) and isinstance(tail, str) else ([], None)


class _Step(NamedTuple):
    """A line that says something."""

    message: _Message
    at: float | None
    session: str | None


class _Node:
    """One message: the lines it was written as."""

    def __init__(self, parent: _Node | None, line: int, *, fresh: bool = False) -> None:
        self.parent = parent
        self.fresh = fresh
        """True when the agent began again here, with a summary of the messages before."""
        self.line = self.last = line
        """The numbers of its first line and of its last."""
        self.steps: list[_Step] = []
        self.answered: set[str] = set()

    @property
    def role(self) -> str:
        return self.steps[0].message.role

    @property
    def session(self) -> str | None:
        return self.steps[-1].session

    @property
    def model(self) -> str | None:
        return next((step.message.model for step in self.steps if step.message.model), None)

    def charge(self, index: int) -> Charge | None:
        """Read what it cost; a call is known by the id the provider gave its answer."""
        # The last line has the final figures.
        usage = next((each for step in reversed(self.steps) if bytes(each := step.message.usage) != b"null"), None)
        if usage is None:
            return None
        key = self.steps[0].message.id or (f"{self.session}/{self.line}" if self.session else None)
        return charge(any_decoder.decode(usage), model=self.model, message=index, key=key)

    @cached_property
    def native(self) -> bytes:
        """Role and content as they were sent, each block with its own bytes."""
        contents = [step.message.content for step in self.steps]
        content: Any = contents[0]
        if len(contents) > 1:
            blocks: dict[bytes, msgspec.Raw] = {}
            for each in contents:
                raws = [msgspec.Raw(encode({"type": "text", "text": each}))] if isinstance(each, str) else each
                # A block that was written twice is one block.
                blocks.update((bytes(block), block) for block in raws)
            content = list(blocks.values())
        return encode({"role": self.role, "content": content})


class _Tree:
    """The messages of one chain: the conversation itself, or one sidechain."""

    def __init__(self) -> None:
        self.nodes: list[_Node] = []
        self._answers: dict[str, _Node] = {}
        self._results: dict[_Node, list[_Node]] = {}

    def add(self, step: _Step, parent: _Node | None, line: int, *, fresh: bool) -> _Node:
        """Put a line where it belongs; return the message it is now part of."""
        results = _results(step.message)
        answer = step.message.id if step.message.role == "assistant" else None
        node = self._home(answer, results, parent)
        if node is None:
            node = _Node(parent, line, fresh=fresh)
            self.nodes.append(node)
            if answer:
                self._answers[answer] = node
            if results and parent is not None and not parent.answered:
                self._results.setdefault(parent, []).append(node)
        node.steps.append(step)
        node.answered |= results
        node.last = line
        return node

    def _home(self, answer: str | None, results: frozenset[str], parent: _Node | None) -> _Node | None:
        if answer:
            return self._answers.get(answer)
        if not results or parent is None:
            return None
        # Results may hang on the lines of their calls, or one on the other.
        candidates = [parent] if parent.answered else self._results.get(parent, [])
        return next((node for node in candidates if node.answered.isdisjoint(results)), None)

    def keep(self, nodes: Iterable[_Node], below: _Node, line: int) -> dict[_Node, _Node]:
        """Repeat messages, one after the other, below another; map each to its copy."""
        copies: dict[_Node, _Node] = {}
        for node in nodes:
            copy = _Node(below, node.line)
            copy.steps, copy.answered, copy.last = node.steps, set(node.answered), line
            below = copies[node] = copy
            self.nodes.append(copy)
        return copies

    def branches(self) -> Iterator[list[_Node]]:
        """Return each path from a first message to a last one: the newest first, the others as they ended."""
        inner = {node.parent for node in self.nodes}
        leaves = sorted((node for node in self.nodes if node not in inner), key=lambda node: node.last)
        for leaf in leaves[-1:] + leaves[:-1]:
            yield _path(leaf, None)


def _path(tail: _Node, head: _Node | None) -> list[_Node]:
    """Return the messages up to this one, from a first one or from `head`."""
    path = [tail]
    while path[-1] is not head and path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _parts(path: Sequence[_Node]) -> list[list[_Node]]:
    """Cut a path where the agent began again with a summary."""
    parts: list[list[_Node]] = [[]]
    for node in path:
        if node.fresh and parts[-1]:
            parts.append([])
        parts[-1].append(node)
    return parts


class _Place(NamedTuple):
    """The place of a line: its chain, the message it is part of or comes after, and whether a compaction is there."""

    side: str | None
    node: _Node | None
    compacted: bool = False


class _File:
    """All lines of one file, on their chains."""

    def __init__(self, notes: Notes) -> None:
        self.trees: dict[str | None, _Tree] = {}
        self._notes = notes
        self._places: dict[str, _Place] = {}
        self._latest: dict[str | None, tuple[str, _Node]] = {}
        """For each chain the last line that said something, and its message."""
        self._loose: set[bytes] = set()
        self._kept: dict[str | None, tuple[list[str], str | None]] = {}
        """For each chain the lines kept by a compaction whose summary has not come yet."""

    def take(self, line: Line) -> None:
        value = decode_line(line, _line_decoder, self._notes)
        if value is None:
            return
        message = _message_of(value, line.number, self._notes)
        if value.uuid is None and message is None:
            return
        if self._is_repeated(value, line):
            self._notes.skip("repeated")
            return
        uuid = value.uuid or f"line {line.number}"
        side = self._side(value, uuid)
        latest = self._latest.get(side)
        if value.is_loose and latest is not None and latest[1].role == "assistant":
            # Put here it would tear the calls from their results.
            self._notes.skip(QUEUED)
            return
        parent, after_compaction = self._parent(value, side)
        fresh = value.starts_over or after_compaction
        if message is None:
            self._places[uuid] = _Place(side, parent, fresh)
            kept = _preserved(value)
            if value.starts_over and kept[0]:
                self._kept[side] = kept
            return
        step = _Step(message, timestamp(value.timestamp), value.session_id or value.printed_session)
        tree = self.trees.setdefault(side, _Tree())
        node = tree.add(step, parent, line.number, fresh=fresh)
        self._places[uuid] = _Place(side, node)
        if value.is_loose and latest is not None:
            # It is in no chain: what comes after the line before it comes after it.
            self._places[latest[0]] = _Place(side, node)
        self._latest[side] = uuid, node
        if fresh and side in self._kept:
            self._keep(tree, side, *self._kept.pop(side), line.number)

    def _is_repeated(self, value: _Written, line: Line) -> bool:
        if not value.is_loose:
            return value.uuid is not None and value.uuid in self._places
        known = line.raw in self._loose
        self._loose.add(line.raw)
        return known

    def _side(self, value: _Written, uuid: str) -> str | None:
        agent = (value.agent_id if value.is_sidechain else None) or value.parent_tool_use_id
        if agent is not None:
            return f"agent-{agent}"
        if not value.is_sidechain:
            return None
        before = self._places.get(value.parent_uuid or "")
        return (before.side if before is not None else None) or f"side {uuid}"

    def _parent(self, value: _Written, side: str | None) -> tuple[_Node | None, bool]:
        """Return the message before a line, and whether a compaction is between them."""
        latest = self._latest[side][1] if side in self._latest else None
        link = value.parent_uuid or (value.logical_parent_uuid if value.starts_over else None)
        if link is None:
            follows = value.starts_over or value.is_loose or value.parent_uuid is msgspec.UNSET
            return (latest if follows else None), False
        found = self._places.get(link)
        if found is None:
            # The line it followed is broken or in another file: the one before that is the nearest there is.
            return latest, False
        return (found.node, found.compacted) if found.side == side else (None, False)

    def _keep(self, tree: _Tree, side: str | None, uuids: list[str], head: str | None, line: int) -> None:
        """Put the messages that a compaction kept after its summary: what comes next comes after the last of them."""
        summary, below = self._latest[side]
        places = [self._places[uuid] for uuid in uuids if uuid in self._places]
        nodes = [place.node for place in places if place.node is not None]
        if head is not None and nodes:
            first = self._places[head].node if head in self._places else None
            path = _path(nodes[-1], first)
            nodes = path if path[0] is first else nodes[-1:]
        if not nodes:
            return
        copies = tree.keep(dict.fromkeys(nodes), below, line)
        for uuid, place in self._places.items():
            if place.node in copies:
                self._places[uuid] = _Place(place.side, copies[place.node])
        last = copies[nodes[-1]]
        self._places[summary] = _Place(side, last)
        self._latest[side] = summary, last


def _sessions(tree: _Tree, name: str, suffix: str, notes: Notes) -> Iterator[RecordedSession]:
    recorded: set[_Node] = set()
    branch = 0
    for index, path in enumerate(tree.branches()):
        found = [
            (number, part)
            for number, part in enumerate(_parts(path), 1)
            if not index or any(node.role == "assistant" and node not in recorded for node in part)
        ]
        branch += bool(found and index)
        base = f"{path[-1].session or name}{suffix}" + (f"-branch-{branch}" if index else "")
        for number, part in found:
            recorded.update(part)
            yield _recorded(part, base if number == 1 else f"{base}-part-{number}")
        if not found:
            # An edited prompt that no model ever answered is no session of its own.
            notes.skip("abandoned", sum(1 for node in path if node not in recorded))


def _recorded(part: Sequence[_Node], id: str) -> RecordedSession:
    models = Counter(node.model for node in part if node.model)
    charges = [node.charge(index) for index, node in enumerate(part)]
    return RecordedSession(
        id=id,
        format="anthropic",
        model=max(models, key=models.__getitem__, default=None),
        messages=tuple(node.native for node in part),
        times=tuple(node.steps[-1].at for node in part),
        charges=tuple(each for each in charges if each is not None),
    )


def _knows(line: Mapping[str, object]) -> bool:
    """Tell whether it is a message with a place in the tree, or one of the notes before the first."""
    if isinstance(line.get("message"), dict) and line.get("type") in SPEAKERS:
        return not PLACED.isdisjoint(line)
    return (line.get("type") == "summary" and "leafUuid" in line) or ("parentUuid" in line and "sessionId" in line)


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[RecordedSession]:
    file = _File(notes)
    for line in lines:
        file.take(line)
    main = file.trees.pop(None, None)
    sessions = [] if main is None else list(_sessions(main, name, "", notes))
    for number, (side, tree) in enumerate(file.trees.items(), 1):
        suffix = side if side is not None and side.startswith("agent-") else f"side-{number}"
        sessions += _sessions(tree, name, f"-{suffix}", notes)
    return sessions


READER = Reader(agent="claude-code", knows=_knows, read=_read)
