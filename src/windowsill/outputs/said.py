"""A tool output as a message brought it: its text, and a line for each thing that is not text."""

from __future__ import annotations

from windowsill.messages import Block, Document, Image, Text, ToolResult


def text_of(result: ToolResult) -> str:
    """The texts of a result joined by line ends; images and documents are listed in their place."""
    return "\n".join(line for block in result.content if (line := _words(block)) is not None)


def _words(block: Block) -> str | None:
    match block:
        case Text():
            return block.text
        case Image():
            return _label("image", block.media_type, _weight(block.data), block.url)
        case Document():
            label = _label("document", block.title, block.media_type, _weight(block.data), block.url)
            # A document of plain text is text like any other: it is read and searched with the rest.
            return label if block.text is None else f"{label}\n{block.text}"
        case _:
            return block.raw.decode(errors="replace") if block.raw else None


def _label(kind: str, *facts: str | None) -> str:
    known = ", ".join(fact for fact in facts if fact)
    return f"[{kind} {known}]" if known else f"[{kind}]"


def _weight(data: str | None) -> str | None:
    """The size of base64 text once decoded."""
    if data is None:
        return None
    return f"{len(data) * 3 // 4 - data[-2:].count('='):,} bytes"
