"""Tie messages to outputs: each result says under which ref the whole output of its tool is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from windowsill.errors import InputError
from windowsill.journal import reader as stored
from windowsill.messages import Message, OutputRef
from windowsill.outputs.parts import ref_at
from windowsill.outputs.show import count_lines, result_text


def with_refs(messages: Sequence[Message], outputs: Mapping[str, OutputRef]) -> list[Message]:
    """Make results refer to these kept outputs, by call id; `InputError` when a call has no result here."""
    answered = {result.tool_use_id for message in messages for result in message.results}
    for call in outputs:
        if call not in answered:
            raise InputError(
                f"there is no result of call {call!r} in this message", remedy="give outputs by the ids of its results"
            )
    return [
        msgspec.structs.replace(
            message,
            blocks=stored.with_refs(message.blocks, [outputs.get(result.tool_use_id) for result in message.results]),
        )
        for message in messages
    ]


def with_places(message: Message, seq: int) -> Message:
    """Make the results of a message say where they are read: the ref, the bytes and the lines of each output."""
    results = message.results
    if not results:
        return message
    refs = []
    for number, result in enumerate(results, 1):
        text = result_text(result)
        here = OutputRef(
            id=ref_at(seq, number, of=len(results)),
            bytes=len(text.encode(errors="replace")),
            lines=count_lines(text),
        )
        refs.append(result.ref or here)
    return msgspec.structs.replace(message, blocks=stored.with_refs(message.blocks, refs))
