"""Sorts the blocks of one message: what stays, what belongs to a call, what its role may not hold."""

from __future__ import annotations

import msgspec

from windowsill.history.repair import notes
from windowsill.history.repair.drafts import stripped
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown

ASSISTANT_BLOCKS = (Text, Reasoning, ToolUse, Unknown)
USER_BLOCKS = (Text, Image, Document, Unknown)


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


class Sorter(msgspec.Struct, frozen=True, kw_only=True):
    """Sorts for one provider; see the rules of the same names."""

    format: str
    blank: bool
    unsigned: bool
    media: bool
    bare_results: bool
    silent_errors: bool

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
                if not is_blank(words := notes.describe(block)):
                    blocks.append(Text(text=words))
            elif self._is_empty(block, message.format):
                found.emptied = True
            else:
                if isinstance(block, ToolUse):
                    found.calls.append((len(blocks), block))
                blocks.append(block)
        return found

    def fit(self, result: ToolResult, id: str, format: str, name: str | None) -> Fitted:
        """The result under the id and name of its call, with nothing in it that the provider refuses."""
        content = result.content
        moved: list[Block] = []
        if not self.media and any(is_media(block) for block in content):
            moved = [Text(text=notes.hoisted(id)), *(block for block in content if is_media(block))]
            content = tuple(block for block in content if not is_media(block))
        filled = self._filled(content, failed=result.is_error, own=format == self.format)
        if id == result.tool_use_id and filled is result.content and name == result.name:
            return Fitted(result, moved)
        changed = msgspec.structs.replace(result, tool_use_id=id, content=filled, name=name, raw=None)
        # Another format's empty output is nothing broken: it is only written differently here.
        return Fitted(changed, moved, emptied=filled is not content and format == self.format)

    def _filled(self, content: tuple[Block, ...], *, failed: bool, own: bool) -> tuple[Block, ...]:
        if not self.blank and any(isinstance(block, Text) and is_blank(block.text) for block in content):
            content = tuple(block for block in content if not (isinstance(block, Text) and is_blank(block.text)))
        if not content and failed and not self.silent_errors:
            return (Text(text=notes.NO_OUTPUT),)
        if not content and own and not self.bare_results:
            return (Text(text=""),)
        return content

    def _is_empty(self, block: Block, format: str) -> bool:
        if isinstance(block, Text):
            return not self.blank and is_blank(block.text)
        if isinstance(block, Reasoning) and not self.unsigned and format == self.format:
            return block.signature is None and block.data is None
        return False


def is_blank(text: str) -> bool:
    """Whether there is nothing to read."""
    return not text or text.isspace()


def is_media(block: Block) -> bool:
    """Whether it is a picture or a file."""
    return isinstance(block, Image | Document)


def same_result(one: ToolResult, other: ToolResult) -> bool:
    """Whether two results say the same, whatever bytes they came as."""
    return one.is_error == other.is_error and list(map(_bare, one.content)) == list(map(_bare, other.content))


def merged_result(one: ToolResult, other: ToolResult, *, one_format: bool) -> ToolResult:
    """Both results as one, in order."""
    more = other.content if one_format else tuple(map(stripped, other.content))
    return msgspec.structs.replace(
        one,
        content=one.content + more,
        is_error=one.is_error or other.is_error,
        ref=one.ref or other.ref,
        raw=None,
    )


def _bare(block: Block) -> Block:
    # Of an unknown block the bytes are all there is.
    return block if isinstance(block, Unknown) else stripped(block)
