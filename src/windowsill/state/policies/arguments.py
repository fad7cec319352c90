"""Find the paths and addresses that a call names among its arguments and in its commands.

A tool may declare which of its parameters are paths, URLs and commands; then these are what counts. For other tools the
format and the name of a parameter, its description, the name of the tool and the looks of a value tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from windowsill import shell
from windowsill.state.tools.argument_checks import resolve
from windowsill.state.tools.projection import ToolOffer
from windowsill.tool_arguments import KIND_OF_WORD

_FORMATS = {
    **dict.fromkeys(("path", "file-path", "directory-path"), "path"),
    **dict.fromkeys(("uri", "url", "uri-reference", "iri", "hostname"), "url"),
}
_DESCRIBED = (
    (re.compile(r"\b(url|uri|web address)\b", re.IGNORECASE), "url"),
    (re.compile(r"\b(path|directory|folder|file ?name)\b", re.IGNORECASE), "path"),
)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ROOTED = re.compile(r"[/~]|\.\.?/|file:|[^\s:]*/\.\.(/|$)", re.IGNORECASE)
_GLOB = re.compile(r"\bglob", re.IGNORECASE)

SHELLS = frozenset({
    "bash", "shell", "sh", "zsh", "terminal", "command", "cmd", "powershell", "python", "ipython", "notebook",
    "jupyter", "node", "repl",
})  # fmt: skip
"""Words in the name of a tool that runs commands or code: what nothing else is known of is one."""

SOURCES = frozenset({"source", "cell", "input"})
"""Parameters of such tools for what they run; elsewhere a source is a path."""

MOVERS = frozenset({"rename", "move", "mv", "copy", "cp", "link", "symlink"})
"""Words in the name of a tool for which the old and the new are paths."""


class Argument(NamedTuple):
    """A value of a call, its parameter, and its kind: `path`, `glob`, `url`, `command`, `patch`, `text`, or empty."""

    parameter: str
    value: Any
    kind: str

    def mentions(self) -> Iterator[Mention]:
        """Yield every path and address that it names."""
        if self.kind == "command" and (isinstance(self.value, str) or _is_argv(self.value)):
            words = list(shell.words_of(self.value))
            yield from (Mention(self.parameter, "path", path, expands=True) for path in shell.paths_in(words))
            yield from (Mention(self.parameter, "url", host, expands=True) for host in shell.hosts_in(words))
        elif isinstance(self.value, str) and self.value and self.kind != "text":
            patched = shell.patched_files(self.value) if self.kind in ("patch", "") else []
            yield from (Mention(self.parameter, "path", file.path) for file in patched)
            if self.kind != "patch":
                yield from self._in_text(self.value)

    def _in_text(self, value: str) -> Iterator[Mention]:
        bare = value.strip()
        is_path = self.kind in ("path", "glob") or _ROOTED.match(bare) is not None
        if _ADDRESS.match(bare) and not bare.lower().startswith("file:"):
            yield Mention(self.parameter, "url", value)
        elif is_path:
            yield Mention(self.parameter, "path", value, expands=self.kind == "glob")
        if self.kind == "url" and (bare.startswith("//") or not (is_path or _ADDRESS.match(bare))):
            yield Mention(self.parameter, "url", value)


class Mention(NamedTuple):
    """A path or an address that a call names, and in which parameter."""

    parameter: str
    kind: Literal["path", "url"]
    text: str
    expands: bool = False
    """It stands in a command or is a pattern: wildcards in it are expanded."""


def arguments_of(offer: ToolOffer, arguments: Mapping[str, Any]) -> list[Argument]:
    """Return every value of a call with its kind; keys of a parameter for paths count as its values."""
    found: list[Argument] = []
    root = offer.tool.schema
    waiting: list[tuple[str, Any, str, dict[str, Any]]] = [("", arguments, "", root)]
    while waiting:
        parameter, value, kind, schema = waiting.pop()
        schema = resolve(schema, root)
        if isinstance(value, Mapping):
            properties = schema.get("properties")
            for key, each in reversed(list(value.items())):
                inner = properties.get(key) if isinstance(properties, dict) else None
                inner = inner if isinstance(inner, dict) else {}
                where = f"{parameter}.{key}".lstrip(".")
                waiting.append((where, each, _kind(offer, str(key), resolve(inner, root)), inner))
                if kind == "path":
                    waiting.append((where, str(key), kind, {}))
        elif isinstance(value, list | tuple) and not (kind == "command" and _is_argv(value)):
            items = schema.get("items")
            inner = items if isinstance(items, dict) else {}
            waiting += [(f"{parameter}[{n}]", each, kind, inner) for n, each in reversed(list(enumerate(value)))]
        else:
            found.append(Argument(parameter, value, kind))
    return found


def _kind(offer: ToolOffer, name: str, schema: dict[str, Any]) -> str:
    declared = {"path": offer.paths, "url": offer.urls, "command": offer.commands}
    if any(declared.values()):
        return next((kind for kind, names in declared.items() if name in names), "text")
    return kind_of(name, schema, offer.name)


def kind_of(name: str, schema: dict[str, Any], tool: str = "") -> str:
    """Tell the kind of a parameter by the format of its schema, its name, its description, or the tool's name."""
    if kind := _FORMATS.get(str(schema.get("format"))):
        return kind
    description = str(schema.get("description", ""))
    about = {word.lower() for word in _NAME_WORD.findall(tool)}
    runs = not SHELLS.isdisjoint(about)
    for word in (each.lower() for each in reversed(_NAME_WORD.findall(name))):
        if word in ("pattern", "patterns") and (_GLOB.search(description) or _GLOB.search(tool)):
            return "glob"
        if (runs and word in SOURCES) or (word in ("old", "new") and not MOVERS.isdisjoint(about)):
            return "command" if runs else "path"
        if kind := KIND_OF_WORD.get(word):
            return kind
    if kind := next((kind for pattern, kind in _DESCRIBED if pattern.search(description)), None):
        return kind
    return "command" if runs else ""


def _is_argv(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
