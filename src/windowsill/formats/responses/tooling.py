"""Calls that the program answers, and the answers: of a function, a custom tool, a shell, a computer, a patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.formats.foreign import FAILED, image_url, result_text, safe_name
from windowsill.formats.responses.items import CALLS, COMPUTER, CUSTOM, FUNCTION, LOCAL_SHELL, PATCH, SHELL, SUFFIX
from windowsill.formats.responses.parts import read_part, read_parts, text_or_parts
from windowsill.formats.wire import decode, items_decoder, text_decoder
from windowsill.messages import Block, Image, Text, ToolResult, ToolUse

ABSENT = Raw(b"null")

BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
"""One pixel: a screenshot that was taken away must still be a picture."""


class _Printed(msgspec.Struct, gc=False):
    stdout: str = ""
    stderr: str = ""


_printed = msgspec.json.Decoder(list[_Printed])


def read_call(kind: str, id: str | None, name: str | None, said: Raw, where: str) -> ToolUse:
    """A call; `said` are its arguments, or the action it asks for."""
    name = name or (None if kind in {FUNCTION, CUSTOM} else kind.removesuffix("_call"))
    if id is None or name is None:
        raise FormatError(f"a {kind} without call_id and name", where=where, remedy="give it both, or leave it out")
    text = text_decoder.decode(said) if _first(said) == b'"' else str(said, "utf-8")
    if said is ABSENT:
        text = "" if kind == CUSTOM else "{}"
    return ToolUse(id=id, name=name, arguments=text, type="" if kind == FUNCTION else kind)


def read_output(kind: str, id: str | None, output: Raw, status: str | None, where: str) -> ToolResult | None:
    """The answer to a call of this kind; `None` when it does not say to which."""
    if id is None:
        return None
    return ToolResult(
        tool_use_id=id,
        content=_content(kind, output, where),
        is_error=kind == PATCH and status == "failed",
        type="" if kind == FUNCTION else kind,
    )


def _content(kind: str, output: Raw, where: str) -> tuple[Block, ...]:
    start = _first(output)
    place = f"{where}.output".removeprefix(".")
    if start == b"n":
        return ()
    if start == b'"':
        return (Text(text=decode(text_decoder, output, place)),)
    if kind == COMPUTER:
        return (read_part(output, place),)
    if kind == SHELL:
        printed = decode(_printed, output, place)
        return tuple(Text(text="\n".join(filter(None, (each.stdout, each.stderr)))) for each in printed)
    if start == b"[":
        return read_parts(decode(items_decoder, output, place), where, "output")
    raise FormatError("output that is neither text nor parts", where=place, remedy="write it as text")


def _first(raw: Raw) -> bytes:
    """The character a value begins with, which tells text from an object from a list."""
    return bytes(memoryview(raw)[:1])


def build_call(block: ToolUse, template: Mapping[str, Raw], *, native: bool) -> dict[str, Any]:
    """The item of a call; the fields it came with are kept."""
    kind = block.type if block.type in CALLS else FUNCTION
    fields: dict[str, Any] = {**template, "type": kind, "call_id": block.id}
    if kind in {FUNCTION, CUSTOM}:
        name = block.name if native else safe_name(block.name)
        return {**fields, "name": name, "arguments" if kind == FUNCTION else "input": block.arguments}
    if template:
        return fields
    action = "operation" if kind == PATCH else "actions" if block.arguments[:1] == "[" else "action"
    checks: dict[str, Any] = {"pending_safety_checks": []} if kind == COMPUTER else {}
    return {**fields, "id": block.id, "status": "completed", action: Raw(block.arguments.encode()), **checks}


def build_output(block: ToolResult, template: Mapping[str, Raw], *, native: bool) -> dict[str, Any]:
    """The item of an answer; a failed one says so in its text where there is no field for it."""
    kind = block.type if block.type in CALLS else FUNCTION
    key = "id" if kind == LOCAL_SHELL and "call_id" not in template else "call_id"
    fields: dict[str, Any] = {**template, "type": kind + SUFFIX, key: block.tool_use_id}
    words = result_text(block, flagged=kind != PATCH)
    if kind == COMPUTER:
        shown = next((url for each in block.content if isinstance(each, Image) and (url := image_url(each))), BLANK)
        return {**fields, "output": {"type": "computer_screenshot", "image_url": shown}}
    if kind == SHELL:
        outcome = {"type": "exit", "exit_code": int(block.is_error)}
        return {**fields, "output": [{"stdout": words, "stderr": "", "outcome": outcome}]}
    if kind == PATCH:
        return {**fields, "status": "failed" if block.is_error else "completed", "output": words}
    if kind == LOCAL_SHELL:
        return {**fields, "output": words}
    failed = (Text(text=FAILED.strip()),) if block.is_error else ()
    if block.is_error and all(isinstance(each, Text) for each in block.content):
        return {**fields, "output": words}
    return {**fields, "output": text_or_parts((*failed, *block.content), native=native)}
