"""Claude Code session files (`~/.claude/projects/*/*.jsonl`), as sessions in Anthropic's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from windowsill.errors import FormatError
from windowsill.formats.transcripts.claude_tree import Node, Said, Step, Tree, parts
from windowsill.formats.transcripts.lines import decoded
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded
from windowsill.formats.wire import decode

AGENT = "claude-code"
FORMAT = "anthropic"

SYNTHETIC = "<synthetic>"
"""The model of answers that the agent wrote itself, such as errors of the API."""

BOUNDARY = "compact_boundary"

_SPEAKERS = frozenset({"user", "assistant"})


class _Line(msgspec.Struct, rename="camel", kw_only=True):
    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    agent_id: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct):
    type: str = ""
    tool_use_id: str | None = None


_line = msgspec.json.Decoder(_Line)
_said = msgspec.json.Decoder(Said)
_block = msgspec.json.Decoder(_Block)


def _knows(line: Mapping[str, object]) -> bool:
    """Whether it is a message with a place in the tree, or one of the notes that stand before the first."""
    if isinstance(line.get("message"), dict) and line.get("type") in _SPEAKERS:
        return "uuid" in line or "parentUuid" in line or "sessionId" in line
    return (line.get("type") == "summary" and "leafUuid" in line) or ("parentUuid" in line and "sessionId" in line)


class _File:
    """All lines of one file, on their chains."""

    def __init__(self, notes: Notes) -> None:
        self.trees: dict[str | None, Tree] = {}
        self._notes = notes
        self._lines: dict[str, tuple[str | None, Node | None, bool]] = {}
        """For each line its chain, the message it is part of or comes after, and whether a compaction stands there."""
        self._latest: dict[str | None, Node] = {}

    def take(self, line: Line) -> None:
        """One more line."""
        value = decoded(line, _line, self._notes)
        if value is None:
            return
        said = self._message(value, line.number)
        if value.uuid is None and said is None:
            return
        uuid = value.uuid or f"line {line.number}"
        if uuid in self._lines:
            self._notes.skip("repeated")
            return
        side = self._side(value, uuid)
        boundary = value.subtype == BOUNDARY or bool(value.is_compact_summary)
        parent, after_boundary = self._parent(value, side, boundary=boundary)
        if said is None:
            self._lines[uuid] = side, parent, boundary or after_boundary
            return
        step = Step(
            at=timestamp(value.timestamp),
            session=value.session_id,
            said=said,
            results=_results(said),
        )
        fresh = boundary or after_boundary
        node = self.trees.setdefault(side, Tree()).add(step, parent, line.number, fresh=fresh)
        self._lines[uuid] = side, node, False
        self._latest[side] = node

    def _message(self, value: _Line, number: int) -> Said | None:
        """What a line says; `None`, and a note, when it is no part of the conversation."""
        if value.type not in _SPEAKERS:
            self._notes.skip(value.type or "untyped")
            return None
        try:
            said = decode(_said, value.message)
        except FormatError as error:
            self._notes.trouble(number, f"message: {error.what}")
            return None
        if said.role not in _SPEAKERS:
            self._notes.trouble(number, f"message: the role {said.role!r} is none of a conversation")
            return None
        if value.is_api_error_message or said.model == SYNTHETIC:
            self._notes.skip("synthetic")
            return None
        return said

    def _side(self, value: _Line, uuid: str) -> str | None:
        if not value.is_sidechain:
            return None
        if value.agent_id is not None:
            return f"agent-{value.agent_id}"
        side, _, _ = self._lines.get(value.parent_uuid or "", (None, None, False))
        return side or f"side {uuid}"

    def _parent(self, value: _Line, side: str | None, *, boundary: bool) -> tuple[Node | None, bool]:
        """The message before a line, and whether a compaction stands between them."""
        link = value.parent_uuid or (value.logical_parent_uuid if boundary else None)
        if link is None:
            return (self._latest.get(side), False) if boundary else (None, False)
        found = self._lines.get(link)
        if found is None:
            # The line it followed is broken or in another file: the one before that is the nearest there is.
            return self._latest.get(side), False
        chain, node, after_boundary = found
        return (node, after_boundary) if chain == side else (None, False)


def _results(said: Said) -> tuple[str, ...]:
    """The calls a message answers; nothing when it says anything else."""
    if said.role != "user" or isinstance(said.content, str):
        return ()
    try:
        blocks = [_block.decode(block) for block in said.content]
    except msgspec.ValidationError:
        return ()
    ids = [block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id is not None]
    return tuple(ids) if len(ids) == len(blocks) else ()


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    file = _File(notes)
    for line in lines:
        file.take(line)
    sessions: list[Recorded] = []
    main = file.trees.pop(None, None)
    if main is not None:
        sessions += _sessions(main, name, "", notes)
    for number, (side, tree) in enumerate(file.trees.items(), 1):
        suffix = side if side is not None and side.startswith("agent-") else f"side-{number}"
        sessions += _sessions(tree, name, f"-{suffix}", notes)
    return sessions


def _sessions(tree: Tree, name: str, suffix: str, notes: Notes) -> Iterator[Recorded]:
    told: set[int] = set()
    branch = 0
    for index, path in enumerate(tree.branches()):
        found = [
            (number, part)
            for number, part in enumerate(parts(path), 1)
            if not index or any(node.role == "assistant" and id(node) not in told for node in part)
        ]
        branch += bool(found and index)
        base = f"{path[-1].session or name}{suffix}" + (f"-branch-{branch}" if index else "")
        for number, part in found:
            told.update(map(id, part))
            yield _recorded(part, base if number == 1 else f"{base}-part-{number}")
        if not found:
            # An edited prompt that no model ever answered is no session of its own.
            notes.skip("abandoned", sum(1 for node in path if id(node) not in told))


def _recorded(part: Sequence[Node], id: str) -> Recorded:
    models = Counter(node.model for node in part if node.model)
    return Recorded(
        id=id,
        format=FORMAT,
        model=models.most_common(1)[0][0] if models else None,
        messages=tuple(node.native() for node in part),
        times=tuple(node.at for node in part),
        usage=tuple(node.usage for node in part),
    )


READER = Reader(agent=AGENT, knows=_knows, read=_read)
