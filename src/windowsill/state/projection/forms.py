"""A tool as one environment shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowsill.messages import Tool
from windowsill.state.projection.checking import Checker
from windowsill.state.projection.narrowing import Narrowing
from windowsill.state.projection.refusal import Refusal

UNREADABLE = "_text"
"""Where `ToolUse.input` keeps arguments that are no JSON object."""


class Form:
    """A definition, its tokens, and what a call to it may say. Made once, shared by every result that holds it."""

    __slots__ = ("_checker", "narrowing", "tokens", "tool")

    def __init__(self, tool: Tool, tokens: int, narrowing: Narrowing | None = None) -> None:
        self.tool = tool
        self.tokens = tokens
        self.narrowing = narrowing
        self._checker = Checker(tool.schema)

    def fault(self, arguments: Any) -> Refusal | None:
        """What speaks against a call with these arguments."""
        name, takes = self.tool.name, self.tool.schema.get("properties") or {UNREADABLE}
        if not isinstance(arguments, Mapping) or (arguments.keys() == {UNREADABLE} and UNREADABLE not in takes):
            why = "its arguments are no JSON object"
            return Refusal(tool=name, rule="schema", why=why, remedy="write them as one JSON object")
        if self.narrowing is not None and (found := self.narrowing.fault(name, arguments)) is not None:
            return found
        fault = self._checker.fault(self.fill(arguments))
        if fault is None:
            return None
        return Refusal(tool=name, rule="schema", parameter=fault.parameter, why=fault.why, remedy=fault.remedy)

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with every fixed value in its place."""
        return dict(arguments) if self.narrowing is None else self.narrowing.fill(arguments)
