"""The rules by which Gemini refuses a request.

Newer models demand back the signature with which they signed the calls of the current turn. A turn begins with words of
the user; each model content in it that calls is a step, and its first call carries the signature. For calls of other
providers' models the API documents placeholders, which it takes without looking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windowsill.models import signs_calls
from windowsill.providers.base import Problem
from windowsill.providers.gemini import BESIDE, NAME_PATTERN, PLACEHOLDER, ROLES, SKIP, camel

_name = re.compile(NAME_PATTERN)

Turn = tuple[str, str, list[dict[str, Any]]]
"""Role, place and parts of a content."""


def check_body(body: dict[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with a body beside its contents."""
    system = body.get("systemInstruction")
    if system is not None:
        parts = system.get("parts") if isinstance(system, dict) else None
        if not isinstance(parts, list) or not parts:
            yield Problem("system", "systemInstruction", "no content with parts", 'give {"parts": [...]}')
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _part(part, "user", f"systemInstruction.parts[{index}]")
    tools = body.get("tools")
    for index, entry in enumerate(tools if isinstance(tools, list) else ()):
        declared = camel(entry).get("functionDeclarations") if isinstance(entry, dict) else None
        for number, tool in enumerate(declared if isinstance(declared, list) else ()):
            yield from _declaration(tool, f"tools[{index}].functionDeclarations[{number}]")


def _declaration(tool: Any, where: str) -> Iterator[Problem]:
    if not isinstance(tool, dict) or not _is_name(tool.get("name")):
        yield Problem("tool-name", where, "a function without a proper name", f"match {_name.pattern}")
        return
    fields = camel(tool)
    if "parameters" in fields and "parametersJsonSchema" in fields:
        yield Problem("tool-schema", where, "parameters stated twice", "keep one of the two fields")
    schema = fields.get("parametersJsonSchema", fields.get("parameters", {"type": "object"}))
    if not isinstance(schema, dict) or str(schema.get("type", "object")).lower() != "object":
        yield Problem("tool-schema", where, "parameters are not of type object", 'give them "type": "object"')


def check_messages(messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with the messages; the model, where it is known, tells whether calls must be signed."""
    model = body.get("model")
    if not isinstance(messages, list) or not messages:
        yield Problem("no-contents", where, "no contents", "add at least one content of the user")
        return
    calls = _Calls()
    roles: list[str] = []
    turns: list[Turn] = []
    for index, content in enumerate(messages):
        place = f"{where}[{index}]"
        role = content.get("role") or "user" if isinstance(content, dict) else None
        if role not in ROLES:
            yield Problem("role", place, f"role {role!r}", "use user or model")
            continue
        if not roles and role == "model":
            yield Problem("first-content-is-user", place, "the first content is the model's", "put a user first")
        roles.append(role)
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            yield Problem("empty-parts", place, "a content without parts", "fill it or leave it out")
            parts = []
        for number, part in enumerate(parts):
            yield from _part(part, role, f"{place}.parts[{number}]")
        known = [camel(part) if isinstance(part, dict) else {} for part in parts]
        yield from calls.take(role, known, place)
        turns.append((role, place, known))
    yield from calls.end()
    for place in _unsigned(turns, signs=signs_calls(model) if isinstance(model, str) else None):
        what = "the first call of a step without its thoughtSignature"
        remedy = "send it back as it came, or render foreign calls with Gemini(signature=PLACEHOLDER)"
        yield Problem("call-is-signed", place, what, remedy)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and _name.fullmatch(name) is not None


def _part(part: Any, role: str, where: str) -> Iterator[Problem]:
    fields = camel(part) if isinstance(part, dict) else {}
    kinds = [key for key in fields if key not in BESIDE]
    signed = bool(fields.get("thoughtSignature"))
    if not fields:
        yield Problem("part", where, "a part that holds nothing", "leave it out")
    elif kinds == ["text"] and not signed and not (isinstance(fields["text"], str) and fields["text"]):
        yield Problem("empty-text", where, "empty text", "leave it out")
    if "functionCall" in fields:
        yield from _function(fields["functionCall"], "args", where)
    if "functionResponse" in fields:
        yield from _function(fields["functionResponse"], "response", where)
    if ("functionCall" in fields and role != "model") or ("functionResponse" in fields and role == "model"):
        yield Problem("parts-by-role", where, f"a {kinds[0]} part of the {role}", "move or remove it")
    for key in ("inlineData", "fileData"):
        if key in fields:
            yield from _media(fields[key], key, where)


def _function(value: Any, field: str, where: str) -> Iterator[Problem]:
    if not isinstance(value, dict) or not _is_name(value.get("name")):
        yield Problem("function-name", where, "a function without a proper name", f"match {_name.pattern}")
    elif not isinstance(value.get(field) or {}, dict) or (field == "response" and value.get(field) is None):
        yield Problem(field, where, f"{field} is not an object", "give an object")


def _media(value: Any, key: str, where: str) -> Iterator[Problem]:
    fields = camel(value) if isinstance(value, dict) else {}
    if not fields.get("data" if key == "inlineData" else "fileUri"):
        yield Problem("media", where, f"{key} without its data", "give it, or leave the part out")
    elif key == "inlineData" and not fields.get("mimeType"):
        yield Problem("media-type", where, "inlineData without a mimeType", "say what it is")


class _Calls:
    """Follows calls and responses through a conversation; contents of one role in a row count as one."""

    def __init__(self) -> None:
        self.open: list[tuple[str, str | None, str]] = []
        self.role = ""

    def take(self, role: str, parts: list[dict[str, Any]], where: str) -> Iterator[Problem]:
        """Follow one more content."""
        if role == "model" and self.role != "model":
            yield from self.end()
        self.role = role
        for index, part in enumerate(parts):
            place = f"{where}.parts[{index}]"
            call, response = part.get("functionCall"), part.get("functionResponse")
            if role == "model" and isinstance(call, dict):
                self.open.append((str(call.get("name")), call.get("id"), place))
            elif role != "model" and isinstance(response, dict):
                yield from self._answer(str(response.get("name")), response.get("id"), place)

    def _answer(self, name: str, id: str | None, where: str) -> Iterator[Problem]:
        for call in self.open:
            if call[0] == name and (id is None or call[1] is None or id == call[1]):
                self.open.remove(call)
                return
        what = f"a response of {name!r}, for which the content before has no call left"
        remedy = "put it right after its call, one for each, or leave it out"
        yield Problem("response-follows-call", where, what, remedy)

    def end(self) -> Iterator[Problem]:
        """Report the calls that are still open."""
        for name, _, place in self.open:
            yield Problem("call-has-response", place, f"call of {name!r} has no response in the next content", "add it")
        self.open = []


def _unsigned(contents: Sequence[Turn], *, signs: bool | None) -> Iterator[str]:
    """Find where the current turn lacks a signature; where `signs` is `None`, its other calls tell."""
    turn = contents[_turn_start(contents) :]
    proofs = {_proof(part) for _, _, parts in turn for part in parts if "functionCall" in part}
    if signs is False or (signs is None and proofs <= {None, PLACEHOLDER, SKIP}):
        return
    before = ""
    called = False
    for role, place, parts in turn:
        # Contents of the model in a row are one step.
        called = called and before == "model"
        before = role
        first = next((index for index, part in enumerate(parts) if "functionCall" in part), None)
        if role == "model" and first is not None and not called:
            called = True
            if _proof(parts[first]) is None:
                yield f"{place}.parts[{first}]"


def _turn_start(contents: Sequence[Turn]) -> int:
    for index in range(len(contents) - 1, -1, -1):
        role, _, parts = contents[index]
        if role == "user" and parts and not any("functionResponse" in part for part in parts):
            return index
    return 0


def _proof(part: dict[str, Any]) -> str | None:
    value = part.get("thoughtSignature")
    return value if isinstance(value, str) and value else None
