"""Claude Code session files (`~/.claude/projects/*/*.jsonl`), as sessions in Anthropic's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from windowsill.formats.transcripts.claude_lines import (
    QUEUED,
    SPEAKERS,
    Preserved,
    Written,
    line_decoder,
    preserved,
    results,
    said,
)
from windowsill.formats.transcripts.claude_tree import Node, Step, Tree, parts
from windowsill.formats.transcripts.lines import decoded
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded

AGENT = "claude-code"
FORMAT = "anthropic"

PLACED = frozenset({"uuid", "parentUuid", "sessionId", "session_id"})
"""Fields of which a line with a message has at least one."""


def _knows(line: Mapping[str, object]) -> bool:
    """Whether it is a message with a place in the tree, or one of the notes that stand before the first."""
    if isinstance(line.get("message"), dict) and line.get("type") in SPEAKERS:
        return not PLACED.isdisjoint(line)
    return (line.get("type") == "summary" and "leafUuid" in line) or ("parentUuid" in line and "sessionId" in line)


class _File:
    """All lines of one file, on their chains."""

    def __init__(self, notes: Notes) -> None:
        self.trees: dict[str | None, Tree] = {}
        self._notes = notes
        self._lines: dict[str, tuple[str | None, Node | None, bool]] = {}
        """For each line its chain, the message it is part of or comes after, and whether a compaction stands there."""
        self._latest: dict[str | None, tuple[str, Node]] = {}
        """For each chain the last line that said something, and its message."""
        self._loose: set[bytes] = set()
        self._kept: dict[str | None, Preserved] = {}
        """For each chain what the compaction kept whose summary has not come yet."""

    def take(self, line: Line) -> None:
        """One more line."""
        value = decoded(line, line_decoder, self._notes)
        if value is None:
            return
        found = said(value, line.number, self._notes)
        if value.uuid is None and found is None:
            return
        if self._is_repeated(value, line):
            self._notes.skip("repeated")
            return
        uuid = value.uuid or f"line {line.number}"
        side = self._side(value, uuid)
        if value.is_loose and self._is_calling(side):
            # Put here it would tear the calls from their results.
            self._notes.skip(QUEUED)
            return
        parent, after_boundary = self._parent(value, side)
        fresh = value.starts_over or after_boundary
        if found is None:
            self._lines[uuid] = side, parent, fresh
            kept = preserved(value) if value.starts_over else None
            if kept is not None:
                self._kept[side] = kept
            return
        step = Step(
            at=timestamp(value.timestamp),
            session=value.session_id or value.printed_session,
            said=found,
            results=results(found),
        )
        tree = self.trees.setdefault(side, Tree())
        node = tree.add(step, parent, line.number, fresh=fresh)
        self._lines[uuid] = side, node, False
        if value.is_loose and side in self._latest:
            # It stands in no chain: what comes after the line before it comes after it.
            self._lines[self._latest[side][0]] = side, node, False
        self._latest[side] = uuid, node
        if fresh and side in self._kept:
            self._keep(tree, uuid, self._kept.pop(side), line.number)

    def _is_repeated(self, value: Written, line: Line) -> bool:
        if not value.is_loose:
            return value.uuid is not None and value.uuid in self._lines
        known = line.raw in self._loose
        self._loose.add(line.raw)
        return known

    def _is_calling(self, side: str | None) -> bool:
        return side in self._latest and self._latest[side][1].role == "assistant"

    def _side(self, value: Written, uuid: str) -> str | None:
        if value.agent is not None:
            return f"agent-{value.agent}"
        if not value.is_sidechain:
            return None
        side, _, _ = self._lines.get(value.parent_uuid or "", (None, None, False))
        return side or f"side {uuid}"

    def _parent(self, value: Written, side: str | None) -> tuple[Node | None, bool]:
        """The message before a line, and whether a compaction stands between them."""
        _, latest = self._latest.get(side, ("", None))
        link = value.parent_uuid or (value.logical_parent_uuid if value.starts_over else None)
        if link is None:
            follows = value.starts_over or value.is_loose or value.parent_uuid is msgspec.UNSET
            return (latest, False) if follows else (None, False)
        found = self._lines.get(link)
        if found is None:
            # The line it followed is broken or in another file: the one before that is the nearest there is.
            return latest, False
        chain, node, after_boundary = found
        return (node, after_boundary) if chain == side else (None, False)

    def _keep(self, tree: Tree, summary: str, kept: Preserved, place: int) -> None:
        """Put the messages that a compaction kept after its summary: what comes next comes after the last of them."""
        side, below, _ = self._lines[summary]
        uuids = kept.uuids or ((kept.tail,) if kept.tail is not None else ())
        nodes = [node for uuid in uuids if (node := self._node(uuid)) is not None]
        if kept.head is not None and nodes:
            nodes = list(_up_to(nodes[-1], self._node(kept.head)))
        if below is None or not nodes:
            return
        again = tree.keep(dict.fromkeys(nodes), below, place)
        for uuid, (chain, node, _) in list(self._lines.items()):
            if id(node) in again:
                self._lines[uuid] = chain, again[id(node)], False
        last = again[id(nodes[-1])]
        self._lines[summary] = side, last, False
        self._latest[side] = summary, last

    def _node(self, uuid: str) -> Node | None:
        _, node, _ = self._lines.get(uuid, (None, None, False))
        return node


def _up_to(tail: Node, head: Node | None) -> Sequence[Node]:
    """The messages from one to a later one; only the last when they are not of one path."""
    path = [tail]
    while path[-1] is not head:
        parent = path[-1].parent
        if parent is None:
            return [tail]
        path.append(parent)
    return path[::-1]


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
    charges = [node.charge(index) for index, node in enumerate(part)]
    return Recorded(
        id=id,
        format=FORMAT,
        model=models.most_common(1)[0][0] if models else None,
        messages=tuple(node.native() for node in part),
        times=tuple(node.at for node in part),
        usage=tuple(node.usage for node in part),
        charges=tuple(each for each in charges if each is not None),
    )


READER = Reader(agent=AGENT, knows=_knows, read=_read)
