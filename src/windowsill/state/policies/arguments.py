"""Finds what a call is about: paths, addresses and commands among its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill import shell
from windowsill.state.tools.arguments import resolve
from windowsill.tool_arguments import KIND_OF_WORD

Schema: TypeAlias = dict[str, Any]
Part: TypeAlias = Literal["path", "glob", "url", "command", "text"]

_FORMATS: dict[str, Part] = {
    **dict.fromkeys(("path", "file-path", "directory-path"), "path"),
    **dict.fromkeys(("uri", "url", "uri-reference", "iri", "hostname"), "url"),
}
_SAID: tuple[tuple[re.Pattern[str], Part], ...] = (
    (re.compile(r"\b(url|uri|web address)\b", re.IGNORECASE), "url"),
    (re.compile(r"\b(path|directory|folder|file ?name)\b", re.IGNORECASE), "path"),
)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ROOTED = re.compile(r"[/~]|\.\.?/|file:|[^\s:]*/\.\.(/|$)", re.IGNORECASE)
_PATTERN = frozenset({"pattern", "patterns"})
_GLOB = re.compile(r"\bglob", re.IGNORECASE)
SHELLS = frozenset({"bash", "shell", "sh", "zsh", "terminal", "command", "cmd", "powershell"})
"""Words in the name of a tool that runs commands: what nothing else is known of is one."""


class Mention(msgspec.Struct, frozen=True):
    """A path or an address that a call names, and in which parameter."""

    parameter: str
    kind: Literal["path", "url"]
    text: str
    wild: bool = False
    """It stands in a command or is a pattern: wildcards in it are expanded."""


def mentions(arguments: Mapping[str, Any], schema: Schema | None = None, tool: str = "") -> Iterator[Mention]:
    """Every path and address that a call names, by the names of its parameters, by its schema and by its looks."""
    for parameter, value, part in _walk(arguments, schema or {}, tool):
        if part == "command" and _is_argv(value):
            yield from _in_command(parameter, value)
        elif isinstance(value, str):
            yield from _in_command(parameter, value) if part == "command" else _in_text(parameter, value, part)


def texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every text in the arguments with the parameter it stands in."""
    return ((parameter, value) for parameter, value, _ in _walk(arguments, {}, "") if isinstance(value, str))


def _in_command(parameter: str, command: Any) -> Iterator[Mention]:
    words = list(shell.words_of(command))
    for path in shell.paths_in(words):
        yield Mention(parameter, "path", path, wild=True)
    for url in shell.hosts_in(words):
        yield Mention(parameter, "url", url, wild=True)


def _in_text(parameter: str, value: str, part: str) -> Iterator[Mention]:
    if part == "text" or not value:
        return
    bare = value.strip()
    is_file = bare.lower().startswith("file:")
    if _ADDRESS.match(bare) and not is_file:
        yield Mention(parameter, "url", value)
    elif part in {"path", "glob"} or _ROOTED.match(bare):
        yield Mention(parameter, "path", value, wild=part == "glob")
        if part == "url" and bare.startswith("//"):
            yield Mention(parameter, "url", value)
    elif part == "url":
        yield Mention(parameter, "url", value)


def _walk(arguments: Mapping[str, Any], schema: Schema, tool: str) -> Iterator[tuple[str, Any, str]]:
    """Every value with its parameter and the part it plays; keys of a parameter for paths count as its values."""
    waiting: list[tuple[str, Any, str, Schema]] = [("", arguments, "", schema)]
    while waiting:
        parameter, value, part, form = waiting.pop()
        form = resolve(form, schema)
        if isinstance(value, Mapping):
            properties = form.get("properties")
            for key, each in reversed(list(value.items())):
                known = properties.get(key) if isinstance(properties, dict) else None
                inner: Schema = known if isinstance(known, dict) else {}
                where = f"{parameter}.{key}".lstrip(".")
                waiting.append((where, each, part_of(str(key), resolve(inner, schema), tool), inner))
                if part == "path":
                    waiting.append((where, str(key), part, {}))
        elif isinstance(value, list | tuple):
            if _is_argv(value):
                yield parameter, value, part
            if part != "command" or not _is_argv(value):
                items = form.get("items")
                inner = items if isinstance(items, dict) else {}
                waiting += [(f"{parameter}[{n}]", each, part, inner) for n, each in reversed(list(enumerate(value)))]
        else:
            yield parameter, value, part


def part_of(name: str, schema: Schema, tool: str = "") -> str:
    """The part a parameter plays: by the format of its schema, by its name, by its description, by the tool's name."""
    if part := _FORMATS.get(str(schema.get("format"))):
        return part
    said = str(schema.get("description", ""))
    for word in (each.lower() for each in reversed(_NAME_WORD.findall(name))):
        if word in _PATTERN and (_GLOB.search(said) or _GLOB.search(tool)):
            return "glob"
        if part := KIND_OF_WORD.get(word):
            return part
    if part := next((part for pattern, part in _SAID if pattern.search(said)), None):
        return part
    return "command" if any(word.lower() in SHELLS for word in _NAME_WORD.findall(tool)) else ""


def _is_argv(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
