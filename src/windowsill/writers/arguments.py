"""The arguments of a call by the part they play, whatever the tool calls them."""

from __future__ import annotations

import functools
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal[
    "path",
    "command",
    "old",
    "new",
    "patch",
    "pattern",
    "first",
    "last",
    "limit",
    "about",
    "words",
    "state",
    "key",
    "note",
]

NAMES: dict[Role, tuple[str, ...]] = {
    "path": (
        "file_path", "path", "filePath", "filepath", "filename", "file", "file_name", "target_file", "notebook_path",
        "relative_path", "absolute_path", "abs_path", "relative_workspace_path", "uri", "AbsolutePath", "TargetFile",
        "source_path",
    ),
    "command": ("command", "cmd", "script", "bash", "shell", "CommandLine", "command_line", "code", "commands", "argv"),
    "old": (
        "old_string", "old_str", "oldString", "old_text", "oldText", "search", "find", "original",
        "SearchContent", "old",
    ),
    "new": (
        "new_string", "new_str", "newString", "new_text", "newText", "content", "contents", "file_text", "replace",
        "replacement", "insert_text", "new_source", "code_edit", "text", "new", "ReplacementContent", "CodeContent",
    ),
    "patch": ("patch", "diff", "input", "patch_text", "_text"),
    "pattern": ("pattern", "query", "regex", "glob", "search_term", "SearchPattern"),
    "first": ("offset", "start_line", "line_start", "startLine", "start", "StartLine", "from_line"),
    "last": ("end_line", "line_end", "endLine", "end", "EndLine", "to_line"),
    "limit": ("limit", "line_count", "num_lines"),
    "about": ("description", "explanation", "justification", "reason", "purpose"),
    "words": ("content", "step", "task", "title", "subject", "text", "name", "description"),
    "state": ("status", "state", "done", "completed"),
    "key": ("taskId", "task_id", "id", "key"),
    "note": ("activeForm", "active_form", "note", "details"),
}  # fmt: skip
"""What tools of known agents and MCP servers call each part, the most telling name first."""

TEXTS = frozenset((*NAMES["command"], *NAMES["old"], *NAMES["new"], *NAMES["patch"]))
"""Arguments that are texts: too long, or kept elsewhere."""


class Arguments:
    """The arguments of one call, or one entry of a list in them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self._present = _present(tuple(given))

    def text(self, role: Role) -> str:
        """The words given for a part; empty when there are none."""
        for key in self._present.get(role, ()):
            value = self.given[key]
            if isinstance(value, str) and value:
                return value
            if key == "new_source" and isinstance(value, list) and all(isinstance(line, str) for line in value):
                return "".join(value)  # a notebook's cell may be a list of lines
        return ""

    def has(self, role: Role) -> bool:
        """Whether words were given for a part, even none."""
        return any(isinstance(self.given[key], str | list) for key in self._present.get(role, ()))

    def number(self, role: Role) -> int | None:
        """The whole number given for a part."""
        for key in self._present.get(role, ()):
            value = self.given[key]
            if type(value) is int and 0 <= value < 2**31:
                return value
        return None

    def value(self, role: Role) -> Any:
        """Whatever was given for a part."""
        return next((self.given[key] for key in self._present.get(role, ())), None)


@functools.lru_cache(maxsize=256)
def _present(keys: tuple[str, ...]) -> dict[Role, tuple[str, ...]]:
    """Which of the known names stand among these. Tools are called with the same few sets of names all the time."""
    given = frozenset(keys)
    found = {role: tuple(name for name in names if name in given) for role, names in NAMES.items()}
    return {role: names for role, names in found.items() if names}
