"""Parts and messages of the Gemini CLI, as neutral messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windowsill.formats.transcripts import chat
from windowsill.formats.transcripts.chat import Turn
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Notes
from windowsill.formats.wire import encode
from windowsill.messages import Block, Image, Text, ToolResult, ToolUse


def turns(message: Mapping[str, Any], notes: Notes) -> Iterator[Turn]:
    """One record of a chat: what was said, and then the results of its calls."""
    kind, at = message.get("type"), timestamp(message.get("timestamp"))
    content = blocks(message.get("content"), notes)
    if kind == "user":
        if content:
            yield Turn(role="user", blocks=content, at=at, prompt=True)
        return
    if kind != "gemini":
        notes.skip(str(kind))
        return
    thoughts = message.get("thoughts")
    if isinstance(thoughts, list) and thoughts:
        notes.skip("thought", len(thoughts))
    calls = [each for each in message.get("toolCalls") or () if isinstance(each, dict)]
    uses = [_use(each.get("id"), each.get("name"), each.get("args"), index) for index, each in enumerate(calls)]
    usage = _usage(message.get("tokens"))
    if content or uses or usage is not None:
        model = message.get("model")
        yield Turn(
            role="assistant",
            blocks=[*content, *uses],
            at=at,
            usage=usage,
            key=str(message["id"]) if "id" in message else None,
            model=model if isinstance(model, str) else None,
        )
    results: list[Block] = [
        _result(use.id, each.get("result"), notes, failed=each.get("status") == "error")
        for use, each in zip(uses, calls, strict=True)
        if each.get("result") is not None
    ]
    if results:
        ends = [ended for each in calls if (ended := timestamp(each.get("timestamp"))) is not None]
        yield Turn(role="user", blocks=results, at=max(ends, default=at))


def checkpoint(contents: Sequence[Mapping[str, Any]], notes: Notes) -> list[Turn]:
    """A list of contents as the API takes them; results answer the calls of the same name, in their order."""
    told: list[Turn] = []
    waiting: list[ToolUse] = []
    for place, content in enumerate(contents):
        found: list[Block] = []
        for index, part in enumerate(content["parts"]):
            call = part.get("functionCall") if isinstance(part, dict) else None
            response = part.get("functionResponse") if isinstance(part, dict) else None
            if isinstance(call, dict):
                use = _use(call.get("id"), call.get("name"), call.get("args"), f"{place}-{index}")
                waiting.append(use)
                found.append(use)
            elif isinstance(response, dict):
                found.append(_result(_answered(response, waiting), [part], notes, failed=False))
            else:
                found += blocks([part], notes)
        if found:
            model = content["role"] == "model"
            told.append(Turn(role="assistant" if model else "user", blocks=found, prompt=not model))
    return told


def _answered(response: Mapping[str, Any], waiting: list[ToolUse]) -> str:
    name, id = response.get("name"), response.get("id")
    found = next((use for use in waiting if use.id == id or (id is None and use.name == name)), None)
    if found is None:
        return str(id or name or "unknown")
    waiting.remove(found)
    return found.id


def blocks(content: Any, notes: Notes) -> list[Block]:
    """The text and the pictures of a content; the other parts are counted."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    found: list[Block] = []
    for part in content if isinstance(content, list) else [content]:
        inline = part.get("inlineData") if isinstance(part, dict) else None
        if isinstance(part, str):
            found.append(Text(text=part))
        elif isinstance(part, dict) and part.get("thought"):
            notes.skip("thought")
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            found.append(Text(text=part["text"]))
        elif isinstance(inline, dict) and str(inline.get("mimeType")).startswith("image/"):
            found.append(Image(media_type=str(inline["mimeType"]), data=str(inline.get("data", ""))))
        elif part is not None:
            notes.skip(next(iter(part), "untyped") if isinstance(part, dict) else "untyped")
    return found


def _use(id: Any, name: Any, args: Any, index: object) -> ToolUse:
    named = name if isinstance(name, str) else "unknown"
    return ToolUse(
        id=id if isinstance(id, str) else f"{named}-{index}",
        name=named,
        arguments=encode(args if isinstance(args, dict) else {}).decode(),
    )


def _result(id: str, result: Any, notes: Notes, *, failed: bool) -> ToolResult:
    found: list[Block] = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if not isinstance(response, dict):
            found += blocks(part, notes)
            continue
        said = response.get("response")
        failed = failed or (isinstance(said, dict) and "error" in said)
        found.append(Text(text=_words(said)))
        found += blocks(response.get("parts") or [], notes)
    return ToolResult(tool_use_id=id, content=tuple(found), is_error=failed)


def _words(response: Any) -> str:
    if isinstance(response, dict) and len(response) == 1:
        only = next(iter(response.values()))
        if isinstance(only, str):
            return only
    return encode(response).decode()


def _usage(tokens: Any) -> bytes | None:
    if not isinstance(tokens, dict):
        return None
    counts = {key: value for key, value in tokens.items() if isinstance(value, int)}
    return chat.usage(
        prompt=counts.get("input", 0) + counts.get("tool", 0),
        answer=counts.get("output", 0) + counts.get("thoughts", 0),
        cached=counts.get("cached", 0),
    )
