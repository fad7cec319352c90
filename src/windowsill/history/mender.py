"""Mends a conversation in one pass, turn by turn.

A turn ends where a request must have been sent: before an assistant message that follows something else, or where the
caller says so. What was sent stays as it was sent: open calls got a stand-in result there, and whatever arrives for
them later is told as words at its own place. So a longer conversation always begins with what the shorter one was, and
prompt caches stay warm.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from operator import is_

import msgspec

from windowsill.history.repair import Answer, Call, Pairing, Words, is_blank, is_media, numbered_name, safe_name
from windowsill.history.repair_rules import (
    EMPTY,
    MISSING,
    NO_OUTPUT,
    NOTHING_NEW,
    OPENING,
    SILENT,
    Repair,
    Repaired,
    RepairKind,
    Rules,
    as_system,
    attached_heading,
    describe,
    result_heading,
)
from windowsill.messages import (
    NEUTRAL,
    Block,
    Document,
    Image,
    Mark,
    Message,
    Origin,
    Reasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
)

ASSISTANT_BLOCKS = (Text, Reasoning, ToolUse, Unknown)
USER_BLOCKS = (Text, Image, Document, Unknown)


class Piece(msgspec.Struct, gc=False):
    """Blocks of one message that stay together; without a source they are a stand-in."""

    source: int | None
    role: Role
    blocks: list[Block]
    fresh: bool = False
    """True when the fields around the blocks do not fit any more, because the role changed."""


class Draft:
    """A message in the making."""

    __slots__ = ("blocks", "fresh", "last_source", "owners", "role", "sources")

    def __init__(self, piece: Piece) -> None:
        self.role = piece.role
        self.blocks: list[Block] = []
        self.owners: list[int | None] = []
        self.sources: set[int] = set()
        self.fresh = False
        self.add(piece)

    def add(self, piece: Piece) -> None:
        """Put a piece at the end."""
        self.last_source = piece.source
        self.blocks += piece.blocks
        self.owners += [piece.source] * len(piece.blocks)
        self.fresh = self.fresh or piece.fresh
        if piece.source is not None:
            self.sources.add(piece.source)

    def add_text(self, text: str) -> None:
        """Put words at the end that nobody said."""
        self.blocks.append(Text(text=text))
        self.owners.append(None)


def _build(draft: Draft, messages: Sequence[Message], format: str) -> Message:
    """Build the message of a draft: the very same object when nothing about it changed."""
    parts = [messages[source] for source in sorted(draft.sources)]
    if len(parts) == 1 and parts[0].role == draft.role and _is_unchanged(draft.blocks, parts[0]):
        return parts[0]
    if not parts:
        return Message(role=draft.role, blocks=tuple(draft.blocks), format=format)
    found = {part.format for part in parts} - {NEUTRAL}
    # Bytes of two formats cannot stand in one message: those of the format it is made for are kept.
    own = format if format in found or not found else min(found)
    blocks = draft.blocks
    if len(found) > 1:
        blocks = [
            without_bytes(block) if owner is not None and messages[owner].format != own else block
            for block, owner in zip(draft.blocks, draft.owners, strict=True)
            if owner is None or messages[owner].format == own or not isinstance(block, Reasoning)
        ]
    fitting = (part.raw for part in parts if part.format == own and part.role == draft.role and part.raw)
    raw = None if draft.fresh else next(fitting, None)
    marks: frozenset[Mark] = frozenset().union(*(part.marks for part in parts))
    return msgspec.structs.replace(
        parts[0],
        role=draft.role,
        blocks=tuple(blocks) or (Text(text=EMPTY),),
        format=own,
        raw=raw,
        edited=True,
        marks=marks,
    )


def without_bytes(block: Block) -> Block:
    """Return the block without the bytes it came as."""
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, raw=None, content=tuple(map(without_bytes, block.content)))
    return block if block.raw is None else msgspec.structs.replace(block, raw=None)


def _is_unchanged(blocks: Sequence[Block], message: Message) -> bool:
    return len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks))


class Sorted(msgspec.Struct):
    """A message taken apart. Calls stand with their place in `blocks`, results with the place they came at."""

    blocks: list[Block] = []
    calls: list[tuple[int, ToolUse]] = []
    results: list[tuple[int, ToolResult]] = []
    emptied: bool = False
    misplaced: bool = False


class Fitted(msgspec.Struct):
    """A result as it may be sent, and the pictures and files that had to leave it."""

    result: ToolResult
    media: list[Block]
    emptied: bool = False


class Sorter(msgspec.Struct, frozen=True):
    """Sorts the blocks of messages by the rules of one provider."""

    rules: Rules

    def sort(self, message: Message) -> Sorted:
        """Take a message of the user or the assistant apart."""
        found = Sorted(emptied=not message.blocks)
        blocks = found.blocks
        allowed = ASSISTANT_BLOCKS if message.role == "assistant" else USER_BLOCKS
        for block in message.blocks:
            if isinstance(block, ToolResult):
                found.results.append((len(blocks), block))
            elif not isinstance(block, allowed):
                found.misplaced = True
                if not is_blank(words := describe(block)):
                    blocks.append(Text(text=words))
            elif self._is_empty(block, message.format):
                found.emptied = True
            else:
                if isinstance(block, ToolUse):
                    found.calls.append((len(blocks), block))
                blocks.append(block)
        return found

    def fit(self, result: ToolResult, id: str, format: str, name: str | None) -> Fitted:
        """Return the result under the id and name of its call, with nothing in it that the provider refuses."""
        content = result.content
        moved: list[Block] = []
        if not self.rules.result_media and any(is_media(block) for block in content):
            moved = [Text(text=attached_heading(id)), *(block for block in content if is_media(block))]
            content = tuple(block for block in content if not is_media(block))
        filled = self._filled(content, failed=result.is_error, own=format == self.rules.format)
        if id == result.tool_use_id and filled is result.content and name == result.name:
            return Fitted(result, moved)
        changed = msgspec.structs.replace(result, tool_use_id=id, content=filled, name=name, raw=None)
        # Another format's empty output is nothing broken: it is only written differently here.
        return Fitted(changed, moved, emptied=filled is not content and format == self.rules.format)

    def _filled(self, content: tuple[Block, ...], *, failed: bool, own: bool) -> tuple[Block, ...]:
        if not self.rules.blank_text and any(isinstance(block, Text) and is_blank(block.text) for block in content):
            content = tuple(block for block in content if not (isinstance(block, Text) and is_blank(block.text)))
        if not content and failed and not self.rules.silent_errors:
            return (Text(text=NO_OUTPUT),)
        if not content and own and not self.rules.bare_results:
            return (Text(text=""),)
        return content

    def _is_empty(self, block: Block, format: str) -> bool:
        if isinstance(block, Text):
            return not self.rules.blank_text and is_blank(block.text)
        if isinstance(block, Reasoning) and self.rules.signed_reasoning and format == self.rules.format:
            return not block.signature and not block.data
        return False


def _words(result: ToolResult) -> Words:
    # Of an unknown block the bytes are all there is.
    content = (block if isinstance(block, Unknown) else without_bytes(block) for block in result.content)
    return result.is_error, tuple(content)


class Orphan(msgspec.Struct):
    """A result of this turn whose id belongs to no call, and the piece that tells it as words."""

    source: int
    result: ToolResult
    words: list[Block]
    direct: bool
    """True when nothing stood between it and the calls but other results."""
    piece: Piece | None = None


class Mender:
    """Collects one turn at a time, and writes it out when the turn ends."""

    def __init__(
        self, messages: Sequence[Message], rules: Rules, used: AbstractSet[str], *, first: bool, continued: bool
    ) -> None:
        self.messages = messages
        self.rules = rules
        self.first = first
        self.continued = continued
        self.leading = first
        pattern = re.compile(rules.id_pattern) if rules.id_pattern is not None else None
        self.pairing = Pairing(used, unique=rules.unique_ids, pattern=pattern)
        self.sorter = Sorter(rules)
        self.drafts: list[Draft] = []
        self.repairs: list[Repair] = []
        self.talking = False
        self.sent = 0
        """Drafts at the start that a request held."""
        self._clear()

    def _clear(self) -> None:
        self.turns: list[tuple[Piece, list[Answer]]] = []
        self.slots: list[list[Answer]] = []
        self.rest: list[Piece] = []
        self.orphans: list[Orphan] = []
        self.taken: set[str] = set()
        """The ids of the calls of the answer that is being read."""
        self.heard = False
        """True once something that is not from the assistant came in this turn."""
        self.spoken = False
        """True once it was something else than results."""

    def _report(self, kind: RepairKind, where: int, what: str, id: str = "") -> None:
        self.repairs.append(Repair(kind, where, id, what))

    # Taking in

    def take(self, index: int, message: Message) -> None:
        """Take one more message of the current turn."""
        if message.role == "assistant":
            self.leading = False
            self._take_assistant(index, message)
        elif message.role == "system":
            self.heard = self.spoken = True
            self._take_system(index, message)
        else:
            self.leading = False
            self.heard = True
            self._take_user(index, message)

    def _take_assistant(self, index: int, message: Message) -> None:
        same = bool(self.turns) and self._is_one_answer(self.turns[-1][0].source, index)
        if not same:
            self.taken = set()
        if not self.turns or not (same or self.rules.alternate or self.rules.in_items):
            self.slots.append([])
        found = self.sorter.sort(message)
        self._report_sorted(index, found)
        blocks = found.blocks
        own = message.format == self.rules.format
        for position, use in found.calls:
            call = self.pairing.call(use, source=index, turn=len(self.slots) - 1, taken=self.taken)
            self.taken.add(call.id)
            # Names of another format are spelled as this one takes them when they are rendered.
            name = self._spell_name(use) if own else use.name
            if call.id != use.id:
                self._report(
                    "id_renamed", index, f"call id {use.id!r} cannot be used here: it is {call.id!r} now", call.id
                )
            if name != use.name:
                what = f"a tool cannot be called {use.name!r} here: it is {name!r} now"
                self._report("name_respelled", index, what, call.id)
            if (call.id, name) != (use.id, use.name):
                blocks[position] = msgspec.structs.replace(use, id=call.id, name=name, raw=None)
        if not blocks and found.results:
            self._report("empty_filled", index, "nothing was left of an assistant message")
        self.turns.append((Piece(index, "assistant", blocks), self.slots[-1]))
        words: list[Block] = []
        for _, result in found.results:
            words += self._result(index, result, "the result stood in an assistant message")
        if words:
            self._rest(Piece(index, "user", words, fresh=True))

    def _spell_name(self, call: ToolUse | Call) -> str:
        """Return the name of a tool as this provider takes it; calls of a kind of their own have fixed names."""
        pattern = self.rules.name_pattern
        return call.name if call.type or pattern is None else safe_name(call.name, pattern)

    def _rest(self, piece: Piece) -> None:
        """Put a piece behind the calls and results of the turn."""
        self.rest.append(piece)
        for orphan in reversed(self.orphans):
            if orphan.piece is not None:
                break
            orphan.piece = piece

    def _take_system(self, index: int, message: Message) -> None:
        inside = self.rules.system_inside or not self.rules.system_apart
        if self.leading or inside or message.format == self.rules.format:
            self.rest.append(Piece(index, "system", list(message.blocks)))
            return
        text = "\n".join(describe(block) for block in message.blocks)
        if is_blank(text):
            self._report("empty_filled", index, "an empty system message was left out")
            return
        self._report("role_order_mended", index, "a system message inside the conversation became words of the user")
        self.rest.append(Piece(index, "user", [Text(text=as_system(text))], fresh=True))

    def _take_user(self, index: int, message: Message) -> None:
        found = self.sorter.sort(message)
        self._report_sorted(index, found)
        blocks = found.blocks
        fresh = False
        added = 0
        for position, result in found.results:
            after = "other words stood before the result" if position or self.spoken else ""
            words = self._result(index, result, after)
            blocks[position + added : position + added] = words
            added += len(words)
            fresh = fresh or bool(words)
        self.spoken = self.spoken or len(blocks) > added or not found.results
        if blocks or not found.results:
            self._rest(Piece(index, "user", blocks, fresh=fresh))

    def _report_sorted(self, index: int, found: Sorted) -> None:
        if found.emptied:
            self._report("empty_filled", index, "empty content was left out")
        if found.misplaced:
            self._report("role_order_mended", index, "a block that this role may not hold became words")

    def _result(self, index: int, result: ToolResult, after: str) -> list[Block]:
        """Put a result at its call; what cannot go there comes back as words."""
        outcome, call = self.pairing.answer(result)
        id = result.tool_use_id
        if outcome == "orphan" and self.continued and self.messages[index].format == self.rules.format:
            return [result]
        if outcome == "orphan":
            self.orphans.append(Orphan(index, result, _as_words(result), direct=not after))
            return self.orphans[-1].words
        if call is None:
            self._report("late_moved", index, "the call was already sent without this result: it is told as words", id)
            return _as_words(result)
        own = self._fit(index, result, call)
        if outcome == "again":
            return self._again(index, call, own)
        call.answer = Answer(index, own.result, call.order)
        self.slots[call.turn].append(call.answer)
        # Another format may write one answer as several messages: results behind the last of them are in place.
        own_call = self.messages[call.source].format == self.rules.format
        if not after and own_call and call.turn < len(self.slots) - 1:
            after = "another assistant message stood before the result"
        if after:
            self._report("late_moved", index, f"{after}: it was moved to its call", call.id)
        return own.media

    def _fit(self, index: int, result: ToolResult, call: Call) -> Fitted:
        """Make a result one that may stand for its call."""
        tied, name = self._tie(result, call)
        own = self.sorter.fit(result, tied, self.messages[index].format, name)
        if own.emptied:
            self._report("empty_filled", index, "empty content of a result was left out", call.id)
        if self.rules.in_items and own.result.type != call.type:
            own.result = msgspec.structs.replace(own.result, type=call.type, raw=None)
            self._report("role_order_mended", index, "a result was of another kind than its call", call.id)
        return own

    def _tie(self, result: ToolResult, call: Call) -> tuple[str, str | None]:
        """Return the id and the name that tie a result to its call; an id made here is never sent, so it may stay."""
        if not self.rules.named_results:
            return call.id, result.name
        id = result.tool_use_id if numbered_name(result.tool_use_id) is not None else call.id
        return id, self._spell_name(call)

    def _again(self, index: int, call: Call, own: Fitted) -> list[Block]:
        earlier = call.answer
        assert earlier is not None
        words = _words(own.result)
        if not earlier.words:
            earlier.words.add(_words(earlier.block))
        if words in earlier.words:
            self._report("duplicate_merged", index, "the same result a second time was left out", call.id)
            return []
        self._report("duplicate_merged", index, "a second result for one call was added to the first", call.id)
        one_format = earlier.source is not None and self.messages[earlier.source].format == self.messages[index].format
        earlier.words.add(words)
        content = own.result.content if one_format else tuple(map(without_bytes, own.result.content))
        earlier.more.append(msgspec.structs.replace(own.result, content=content))
        return own.media

    # Writing out

    def settle(self, index: int, *, last: bool = False) -> None:
        """End the turn: a request with everything before `index` was sent, or is about to be."""
        self._answer_waiting([call for call in self.pairing.calls if call.answer is None])
        touched = max(len(self.drafts) - 1, 0)
        self._push_turn()
        for piece in self.rest:
            self._push(piece)
        if last and not self.heard:
            self._drop_empty_reply()
        self._fill_gaps(index)
        for draft in self.drafts[touched:]:
            self._fill(draft)
        self.sent = len(self.drafts)
        self.pairing.settle()
        self._clear()

    def _push_turn(self) -> None:
        if self.rules.in_items:
            # An item that says nothing may be left out: the turn goes on without it.
            self.turns = [turn for turn in self.turns if turn[0].blocks]
            self._drop_loose_reasoning()
        if self.rules.alternate or self.rules.in_items:
            for piece, _ in self.turns:
                self._push(piece)
            for slot in self.slots:
                self._push_results(slot)
        else:
            for place, (piece, slot) in enumerate(self.turns, start=1):
                self._push(piece)
                if place == len(self.turns) or self.turns[place][1] is not slot:
                    self._push_results(slot)

    def _is_one_answer(self, before: int | None, index: int) -> bool:
        """Tell whether two messages are parts of one answer, which another format wrote as items, and are one here."""
        if self.rules.in_items or before is None or before != index - 1:
            return False
        one, other = self.messages[before], self.messages[index]
        apart = {self.rules.format, NEUTRAL, *self.rules.dialects}
        return one.role == other.role == "assistant" and one.format == other.format and one.format not in apart

    def _answer_waiting(self, waiting: Sequence[Call]) -> None:
        """Give each call that waits the result whose id was changed on the way, or a stand-in, in the order of calls.

        The only orphan right behind the calls answers the only one that waits; all others stay words.
        """
        if len(waiting) == len(self.orphans) == 1 and self.orphans[0].direct:
            self._assign(self.orphans.pop(), waiting[0])
        for orphan in self.orphans:
            what = "a result without a call is told as words"
            self._report("orphan_told", orphan.source, what, orphan.result.tool_use_id)
        by_slot: dict[int, list[Answer]] = {}
        for call in waiting:
            answer = call.answer or self._stand_in(call)
            by_slot.setdefault(call.turn, []).append(answer)
        for turn, answers in by_slot.items():
            self.slots[turn][:] = _merge_in_order(self.slots[turn], answers)

    def _assign(self, orphan: Orphan, call: Call) -> None:
        index, piece, id = orphan.source, orphan.piece, orphan.result.tool_use_id
        self._report("result_assigned", index, f"the result of {id!r} answers the only call that waited", call.id)
        own = self._fit(index, orphan.result, call)
        call.answer = Answer(index, own.result, call.order)
        assert piece is not None
        place = next(place for place, block in enumerate(piece.blocks) if block is orphan.words[0])
        piece.blocks[place : place + len(orphan.words)] = own.media
        if not piece.blocks:
            self.rest = [each for each in self.rest if each is not piece]

    def _stand_in(self, call: Call) -> Answer:
        self._report("missing_supplied", call.source, "a call without a result got a stand-in", call.id)
        name = self._spell_name(call) if self.rules.named_results else None
        content = (Text(text=MISSING),)
        block = ToolResult(tool_use_id=call.id, content=content, is_error=True, name=name, type=call.type)
        return Answer(None, block, call.order)

    def _push_results(self, slot: Sequence[Answer]) -> None:
        for entry in slot:
            self._push(Piece(entry.source, "user", [entry.whole()]), results=True)

    def _drop_loose_reasoning(self) -> None:
        """Drop reasoning at the end of a turn: it lost what it led to, and is refused alone."""
        while self.turns and self._is_own_reasoning(self.turns[-1][0]):
            source = self.turns.pop()[0].source
            self._report("orphan_removed", source or 0, "reasoning that nothing follows was left out")

    def _is_own_reasoning(self, piece: Piece | Draft) -> bool:
        """Tell whether it is nothing but reasoning in the format of the request."""
        source = piece.source if isinstance(piece, Piece) else piece.last_source
        own = source is not None and self.messages[source].format == self.rules.format
        return own and bool(piece.blocks) and all(isinstance(block, Reasoning) for block in piece.blocks)

    def _drop_empty_reply(self) -> None:
        """Drop an empty assistant message at the very end: a model could not go on from it."""
        reply = self.drafts[-1] if self.drafts else None
        if (
            reply is not None
            and reply.role == "assistant"
            and not reply.blocks
            and (self.drafts[:-1] or not self.first)
        ):
            self.drafts.pop()

    def _push(self, piece: Piece, *, results: bool = False) -> None:
        begins = piece.role == "assistant" and not self.talking and self.first and self.rules.user_first
        if begins and not self._is_own_compaction(piece):
            self._report("role_order_mended", piece.source or 0, "the first message was not from the user")
            self._start(Piece(None, "user", [Text(text=OPENING)]))
        last = self.drafts[-1] if self.drafts else None
        if last is None or last.role != piece.role or piece.role == "system":
            self._start(piece)
        elif piece.source is not None and (
            last.last_source == piece.source
            or (len(self.drafts) > self.sent and self._is_one_answer(last.last_source, piece.source))
        ):
            last.add(piece)
        elif not self.rules.alternate or (not results and self._may_stand_beside(last, piece)):
            self._start(piece)
        else:
            self._report_joined(last, piece, results=results)
            last.add(piece)

    def _may_stand_beside(self, last: Draft, piece: Piece) -> bool:
        """Tell whether two messages of one role may stay two: the provider takes them so.

        Either they came so, or the first was sent, and nothing is added to what was sent.
        """
        if not self.rules.takes_neighbours or (self.rules.joined_replies and piece.role == "assistant"):
            return False
        if piece.role == "user" and len(self.drafts) == self.sent:
            return True
        return self._is_unchanged(piece.source, piece.blocks) and self._is_unchanged(last.last_source, last.blocks)

    def _is_unchanged(self, source: int | None, blocks: Sequence[Block]) -> bool:
        """Tell whether these blocks are a whole message: of the provider's own format, as it came, or a stand-in.

        Stand-ins stay apart so that what stood before the newest one is the same bytes as before.
        """
        if source is None or not blocks:
            return False
        message = self.messages[source]
        whole = message.format == self.rules.format or message.origin in (Origin.SUMMARY, Origin.MARKER)
        return whole and _is_unchanged(blocks, message)

    def _is_own_compaction(self, piece: Piece) -> bool:
        """Tell whether it begins with this provider's compaction of everything before."""
        first = piece.blocks[0] if piece.blocks else None
        own = piece.source is not None and self.messages[piece.source].format == self.rules.format
        return own and isinstance(first, Unknown) and first.type == "compaction"

    def _report_joined(self, draft: Draft, piece: Piece, *, results: bool) -> None:
        if piece.source is None or piece.source in draft.sources or not draft.sources:
            return
        # Another format's results, and the items of its answers, come one message each by nature: putting them together
        # mends nothing.
        if self.messages[piece.source].format == self.rules.format or not (results or piece.role == "assistant"):
            self._report("role_order_mended", piece.source, f"two {piece.role} messages in a row became one")

    def _start(self, piece: Piece) -> None:
        self.drafts.append(Draft(piece))
        if piece.role != "system":
            self.talking = True
            self.leading = False

    def _fill_gaps(self, index: int) -> None:
        """Put a stand-in where everything a user message held was left out."""
        if self.first and index and not self.talking and (self.rules.user_first or not self.drafts):
            self._report("role_order_mended", index - 1, "nothing was left of the conversation")
            self._start(Piece(None, "user", [Text(text=OPENING)]))
        elif self.rules.alternate and self.heard and self.drafts and self.drafts[-1].role == "assistant":
            self._report("role_order_mended", index - 1, "nothing was left of a user message")
            self._start(Piece(None, "user", [Text(text=NOTHING_NEW)]))

    def _fill(self, draft: Draft) -> None:
        if draft.role == "system":
            return
        if not draft.blocks:
            draft.add_text(EMPTY)
        elif self.rules.in_items and self._is_own_reasoning(draft):
            return
        elif draft.role == "assistant" and self._is_silent(draft.blocks):
            self._report("empty_filled", draft.last_source or 0, "a message that ended in reasoning got a text")
            draft.add_text(SILENT)

    def _is_silent(self, blocks: Sequence[Block]) -> bool:
        if not isinstance(blocks[-1], Reasoning):
            return False
        return not self.rules.reasoning_last or all(isinstance(block, Reasoning) for block in blocks)

    def finish(self) -> Repaired:
        """Return the whole conversation, as it can be sent."""
        self.settle(len(self.messages), last=True)
        built = tuple(_build(draft, self.messages, self.rules.format) for draft in self.drafts)
        return Repaired(
            messages=built,
            repairs=tuple(self.repairs),
            sources=tuple(tuple(sorted(draft.sources)) for draft in self.drafts),
            ids=frozenset(self.pairing.used),
        )


def _merge_in_order(there: Sequence[Answer], more: Sequence[Answer]) -> list[Answer]:
    """Put each of `more` before the first result of a later call; both keep their order."""
    found: list[Answer] = []
    rest = deque(there)
    for answer in more:
        while rest and rest[0].order < answer.order:
            found.append(rest.popleft())
        found.append(answer)
    return [*found, *rest]


def _as_words(result: ToolResult) -> list[Block]:
    """Turn a result into words of the user: its heading and words, then its pictures and files."""
    lines = [result_heading(result)]
    media: list[Block] = []
    for block in result.content:
        if isinstance(block, Text):
            lines.append(block.text)
        elif is_media(block):
            media.append(block)
        else:
            lines.append(describe(block))
    return [Text(text="\n".join(lines)), *media]


def mend(
    messages: Sequence[Message],
    rules: Rules,
    *,
    sent: Collection[int],
    used: AbstractSet[str],
    first: bool,
    continued: bool = False,
) -> Repaired:
    """Mend a conversation that may need it; see `repair`."""
    mender = Mender(messages, rules, used, first=first, continued=continued)
    cuts = frozenset(sent)
    before = "assistant"
    for index, message in enumerate(messages):
        if index in cuts or (message.role == "assistant" and before != "assistant"):
            mender.settle(index)
        mender.take(index, message)
        before = message.role
    return mender.finish()
