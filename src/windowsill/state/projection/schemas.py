"""Schemas as rules leave them: copies, valid JSON Schema, with everything kept that no rule speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from windowsill.errors import InputError
from windowsill.formats.tool_schemas import with_schema
from windowsill.messages import Tool
from windowsill.state.projection.checking import accepts
from windowsill.state.projection.narrowing import Narrow, Narrowing
from windowsill.state.projection.paths import ENTRIES, Edit, Path, Schema, certain, edited, parse, resolved, same, spell
from windowsill.state.projection.refusal import named, several, shown
from windowsill.state.runtime import Environment


def narrowed(tool: Tool, rules: Sequence[Narrow], environment: Environment) -> tuple[Tool, Narrowing]:
    """A tool as these rules leave it, the definition it came with untouched, and what they demand of its calls."""
    root = tool.schema
    work = _Work(tool.name, environment, root)
    for rule in rules:
        for name in rule.remove:
            work.remove(name)
        for name, value in rule.force.items():
            work.force(name, value)
        if rule.allow is not None:
            work.allow(rule.parameter, rule.allow)
    demands = Narrowing(
        environment=environment,
        allowed=tuple(work.allowed.items()),
        removed=tuple(work.removed),
        forced=tuple(work.forced.items()),
    )
    return with_schema(tool, work.schema), demands


class _Work:
    """A schema while rules are applied to it."""

    def __init__(self, tool: str, environment: Environment, root: Schema) -> None:
        self.tool, self.environment, self.root, self.schema = tool, environment, root, root
        self.allowed: dict[Path, tuple[Any, ...]] = {}
        self.removed: list[Path] = []
        self.forced: dict[Path, Any] = {}

    def remove(self, name: str) -> None:
        path = parse(name, self.schema)
        if path[-1] == ENTRIES:
            raise InputError(f"{self.tool!r}: {name!r} names entries of a list", remedy="remove the list itself")
        self._edit(path, _without)
        self.removed.append(path)

    def force(self, name: str, value: Any) -> None:
        path = parse(name, self.schema)

        def fixed(schema: Schema) -> Schema:
            if not accepts(schema, value, self.root):
                raise InputError(
                    f"{self.tool!r}: the parameter {name!r} does not take {shown(value)}",
                    remedy="force a value that its schema accepts",
                )
            return self._noted({**_with_default(schema, [value]), "const": value}, f"always {shown(value)}")

        self._edit(path, lambda holder, last: _replaced(holder, last, fixed(_part(holder, last, self.root))))
        self.forced[path] = value

    def allow(self, name: str, values: tuple[Any, ...]) -> None:
        path = parse(name, self.schema)
        left: list[Any] = []
        whole = certain(self.schema, path, self.root)

        def edit(holder: Schema, last: str) -> Schema:
            schema = _part(holder, last, self.root)
            fitting = [value for value in values if accepts(schema, value, self.root)]
            if not fitting:
                raise InputError(
                    f"{self.tool!r}: the parameter {name!r} takes none of {several(values)}",
                    remedy="allow values that its schema accepts",
                )
            left.extend(value for value in fitting if not any(same(value, other) for other in left))
            part = self._noted({**_with_default(schema, fitting), "enum": fitting}, "only the listed values")
            return _replaced(holder, last, part) if last == ENTRIES else _demanded(_replaced(holder, last, part), last)

        self._edit(path, edit)
        self.allowed[path] = tuple(left)
        if whole:
            for length in range(len(path) - 1, 0, -1):
                self._edit(path[:length], partial(_held, path[length], self.root))

    def _edit(self, path: Path, edit: Edit) -> None:
        found = edited(self.schema, path, edit, self.root)
        if found is None:
            raise InputError(
                f"a rule narrows the parameter {spell(path)!r}, which {self.tool!r} has not in {self.environment}",
                remedy=f"it has {named(self.schema.get('properties') or (), none='no parameters')}",
            )
        self.schema = found

    def _noted(self, schema: Schema, note: str) -> Schema:
        said = schema.get("description")
        note = f"({self.environment}: {note})"
        return {**schema, "description": f"{said} {note}" if said else note}


def _part(holder: Schema, last: str, root: Schema) -> Schema:
    return resolved(holder["items"] if last == ENTRIES else holder["properties"][last], root)


def _replaced(holder: Schema, last: str, part: Schema) -> Schema:
    if last == ENTRIES:
        return {**holder, "items": part}
    return {**holder, "properties": {**holder["properties"], last: part}}


def _with_default(schema: Schema, values: list[Any]) -> Schema:
    """The schema, without a default that is no longer allowed."""
    if any(same(schema.get("default"), value) for value in values):
        return schema
    return {key: value for key, value in schema.items() if key != "default"}


def _demanded(holder: Schema, name: str) -> Schema:
    """The holder with the parameter required: left out, a tool would take what nobody checked."""
    return holder if "default" in holder["properties"][name] else _required(holder, name)


def _held(inner: str, root: Schema, holder: Schema, name: str) -> Schema:
    """The holder with a part required that has to hold a parameter: left out, it would take the parameter with it."""
    part = _part(holder, name, root)
    return _required(holder, name) if inner in (part.get("required") or ()) else holder


def _required(holder: Schema, name: str) -> Schema:
    required = holder.get("required") or []
    return holder if name in required else {**holder, "required": [*required, name]}


def _without(holder: Schema, name: str) -> Schema:
    """The holder without a parameter, and without what else demands it."""
    found = {**holder, "properties": {key: each for key, each in holder["properties"].items() if key != name}}
    required = [each for each in holder.get("required") or [] if each != name]
    found = {key: value for key, value in found.items() if key != "required"}
    if required:
        found["required"] = required
    if isinstance(tied := holder.get("dependentRequired"), dict):
        found["dependentRequired"] = {
            key: [each for each in others if each != name] for key, others in tied.items() if key != name
        }
    return found
