"""The arguments of tool calls by the part they play, whatever a tool calls them."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple, TypeAlias

Role: TypeAlias = Literal[
    "path", "glob", "url", "command", "old", "new", "patch", "pattern", "first", "last", "limit", "about", "words",
    "state", "key", "note",
]  # fmt: skip

Kind: TypeAlias = Literal["path", "glob", "url", "command", "patch", "text"]
"""The kinds that a policy tells apart; a patch names the files it changes; a text is not looked at, as one may write
about a path without going there."""


class Row(NamedTuple):
    """The names that tools give to one part."""

    names: tuple[str, ...] = ()
    """The names in tools of known agents and MCP servers, the most telling first."""
    kind: Kind | None = None
    words: frozenset[str] = frozenset()
    """Words of names that mean this kind in a tool that nobody knows."""


def _row(names: str = "", kind: Kind | None = None, words: str = "") -> Row:
    return Row(tuple(names.split()), kind, frozenset(words.split()))


TABLE: dict[Role, Row] = {
    "path": _row(
        "file_path path filePath filepath filename file file_name target_file notebook_path relative_path "
        "absolute_path abs_path relative_workspace_path uri AbsolutePath TargetFile source_path",
        "path",
        "path paths file files filename filenames filepath directory directories dir dirs folder folders cwd workdir "
        "target targets src source sources dest dst destination root location output notebook",
    ),
    "glob": _row("", "glob", "glob globs"),
    "url": _row("", "url", "url urls uri uris href endpoint host hosts hostname domain webhook"),
    "command": _row(
        "command cmd script bash shell CommandLine command_line code commands argv",
        "command",
        "command commands cmd script shell bash argv args run exec code commandline",
    ),
    "old": _row(
        "old_string old_str oldString old_text oldText search find original SearchContent old", "text", "old search"
    ),
    "new": _row(
        "new_string new_str newString new_text newText content contents file_text replace replacement insert_text "
        "new_source code_edit text new ReplacementContent CodeContent",
        "text",
        "new content contents text body message replacement",
    ),
    "patch": _row("patch diff input patch_text _text", "patch", "patch diff"),
    "pattern": _row("pattern query regex glob search_term SearchPattern", "text", "pattern query regex question"),
    "first": _row("offset start_line line_start startLine start StartLine from_line"),
    "last": _row("end_line line_end endLine end EndLine to_line"),
    "limit": _row("limit line_count num_lines"),
    "about": _row(
        "description explanation justification reason purpose",
        "text",
        "description explanation reason prompt title comment summary note",
    ),
    "words": _row("content step task title subject text name description"),
    "state": _row("status state done completed"),
    "key": _row("taskId task_id id key"),
    "note": _row("activeForm active_form note details"),
}
"""Every part with its names; summaries go by the whole name, policies by the last known word of it."""

KIND_OF_WORD: dict[str, Kind] = {word: row.kind for row in TABLE.values() if row.kind for word in row.words}

TEXTS = frozenset(name for role in ("command", "old", "new", "patch") for name in TABLE[role].names)
"""Arguments that are texts: too long, or kept elsewhere."""


class Arguments:
    """The arguments of one call, or one entry of a list in them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self._present = _present(tuple(given))

    def text(self, role: Role) -> str:
        """Return the words given for a part; empty when there are none."""
        for key in self._present.get(role, ()):
            value = self.given[key]
            if isinstance(value, str) and value:
                return value
            if key == "new_source" and isinstance(value, list) and all(isinstance(line, str) for line in value):
                return "".join(value)  # a notebook's cell may be a list of lines
        return ""

    def has(self, role: Role) -> bool:
        """Tell whether words were given for a part, even none."""
        return any(isinstance(self.given[key], str | list) for key in self._present.get(role, ()))

    def number(self, role: Role) -> int | None:
        """Return the whole number given for a part."""
        for key in self._present.get(role, ()):
            value = self.given[key]
            if type(value) is int and 0 <= value < 2**31:
                return value
        return None

    def value(self, role: Role) -> Any:
        """Return whatever was given for a part."""
        return next((self.given[key] for key in self._present.get(role, ())), None)


@functools.lru_cache(maxsize=256)
def _present(keys: tuple[str, ...]) -> dict[Role, tuple[str, ...]]:
    """Find the known names among these. Tools are called with the same few sets of names all the time."""
    given = frozenset(keys)
    found = {role: tuple(name for name in row.names if name in given) for role, row in TABLE.items()}
    return {role: names for role, names in found.items() if names}
