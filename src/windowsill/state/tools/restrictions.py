"""Rules that narrow what a tool takes: allow-lists, parameters taken away, values that are fixed.

A narrowed schema is a copy along the way to the parameter, valid JSON Schema; all that no rule is about stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.providers import with_schema
from windowsill.state.layers import Environment, check_list, known_environments
from windowsill.state.tools.argument_checks import (
    DEEPEST,
    ArgumentChecker,
    Refusal,
    accepts,
    list_names,
    list_values,
    quote,
    resolve,
)
from windowsill.tokens.counters import json_text

Schema: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]
Edit: TypeAlias = Callable[[Schema, str], Schema]
"""Takes the schema that holds a parameter, and the parameter's name in it; returns the holder changed."""

ENTRIES = "[]"
"""Every entry of a list: `edits[].path`."""

_BRANCHES = ("anyOf", "oneOf", "allOf")


class Narrow(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for one tool. Parameters inside others are written `options.mode`, those of entries `edits[].path`."""

    tool: str
    parameter: str = ""
    """The parameter that `allow` is about."""
    allow: tuple[Any, ...] | None = None
    """The only values it may have. It has to be given then, unless its default is among them."""
    remove: tuple[str, ...] = ()
    """Parameters that are neither shown nor accepted."""
    force: dict[str, Any] = {}
    """Parameters with a fixed value: filled in when left out, refused when another value is given."""
    environments: tuple[Environment, ...] = ("prod",)

    def __post_init__(self) -> None:
        where = f"the rule for {self.tool!r}"
        force = msgspec.structs.force_setattr
        force(self, "environments", known_environments(self.environments, f"{where}, environments"))
        force(self, "remove", check_list(self.remove, f"{where}, remove"))
        if self.allow is not None:
            force(self, "allow", check_list(self.allow, f"{where}, allow"))
            if not self.allow:
                raise InputError(f"{where} allows no value", remedy="keep the tool out by permission or environment")
        if bool(self.parameter) != (self.allow is not None):
            raise InputError(f"{where} has only one of parameter and allow", remedy="give both")
        if not (self.parameter or self.remove or self.force):
            raise InputError(f"{where} narrows nothing", remedy="give allow, remove or force")


class NarrowedTool:
    """A tool as one environment shows it, and what a call to it may say."""

    def __init__(
        self, tool: Tool, count: Callable[[str], int], rules: Sequence[Narrow] = (), environment: Environment = "dev"
    ) -> None:
        self._environment = environment
        self._root = self._schema = tool.schema
        self._allowed: dict[Path, tuple[Any, ...]] = {}
        self._removed: list[Path] = []
        self._forced: dict[Path, Any] = {}
        self.name = tool.name
        for rule in rules:
            for name in rule.remove:
                self._remove(name)
            for name, value in rule.force.items():
                self._restrict(name, [value], fixed=True)
            if rule.allow is not None:
                self._restrict(rule.parameter, rule.allow, fixed=False)
        self.is_narrowed = bool(rules)
        self.tool = with_schema(tool, self._schema) if rules else tool
        self.tokens = count(json_text(self.tool))
        self._checker = ArgumentChecker(tool.name, self._schema)

    def refuse(self, arguments: Any) -> Refusal | None:
        """Return the reason not to run a call with these arguments; `None` when it may be run."""
        return (
            self._checker.not_an_object(arguments)
            or self._refuse_narrowed(arguments)
            or self._checker.fault(self.fill(arguments))
        )

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Put every fixed value in its place, whatever stood there."""
        found = dict(arguments)
        for path, value in self._forced.items():
            found = _fill(found, path, value)
        return found

    def _refuse_narrowed(self, arguments: Mapping[str, Any]) -> Refusal | None:
        for path in self._removed:
            if any(True for _ in _values_at(arguments, path)):
                why = f"the parameter {_spell(path)!r} is not available in {self._environment}"
                return self._refusal(path, why, "leave it out")
        for path, value in self._forced.items():
            if any(not _is_same(given, value) for given in _values_at(arguments, path)):
                why = f"the parameter {_spell(path)!r} is fixed in {self._environment}"
                return self._refusal(path, why, f"give {quote(value)} or leave it out")
        for path, values in self._allowed.items():
            for given in _values_at(arguments, path):
                if not any(_is_same(given, value) for value in values):
                    why = f"{quote(given)} is not allowed for the parameter {_spell(path)!r} in {self._environment}"
                    return self._refusal(path, why, f"give one of {list_values(values)}")
        return None

    def _refusal(self, path: Path, why: str, remedy: str) -> Refusal:
        return Refusal(tool=self.name, rule="narrowed", parameter=_spell(path), why=why, remedy=remedy)

    def _remove(self, name: str) -> None:
        path = _parse(name, self._schema)
        if path[-1] == ENTRIES:
            raise InputError(f"{self.name!r}: {name!r} names entries of a list", remedy="remove the list itself")
        self._edit(path, _without)
        self._removed.append(path)

    def _restrict(self, name: str, values: Sequence[Any], *, fixed: bool) -> None:
        """Leave a parameter only these of the values that it takes; the one of a fixed value is filled in."""
        path = _parse(name, self._schema)
        left: list[Any] = []
        has_always = not fixed and _has_always(self._schema, path, self._root)

        def edit(holder: Schema, last: str) -> Schema:
            part = _part(holder, last, self._root)
            fitting = [value for value in values if accepts(part, value, self._root)]
            if not fitting:
                raise InputError(
                    f"{self.name!r}: the parameter {name!r} takes none of {list_values(values)}",
                    remedy="give values that its schema accepts",
                )
            left.extend(value for value in fitting if not any(_is_same(value, other) for other in left))
            keeps_default = any(_is_same(part.get("default"), value) for value in fitting)
            note = f"always {quote(fitting[0])}" if fixed else "only the listed values"
            part = {key: value for key, value in part.items() if key != "default" or keeps_default} | {
                "description": f"{part.get('description', '')} ({self._environment}: {note})".lstrip(),
                **({"const": fitting[0]} if fixed else {"enum": fitting}),
            }
            holder = _replace(holder, last, part)
            # Left out, a tool would take what nobody checked.
            return holder if fixed or last == ENTRIES or "default" in part else _require(holder, last)

        self._edit(path, edit)
        if fixed:
            self._forced[path] = left[0]
            return
        self._allowed[path] = tuple(left)
        if has_always:
            for length in range(len(path) - 1, 0, -1):
                self._edit(path[:length], partial(_require_holder, path[length], self._root))

    def _edit(self, path: Path, edit: Edit) -> None:
        found = _edited(self._schema, path, edit, self._root)
        if found is None:
            raise InputError(
                f"a rule narrows the parameter {_spell(path)!r}, which {self.name!r} has not in {self._environment}",
                remedy=f"it has {list_names(self._schema.get('properties') or (), none='no parameters')}",
            )
        self._schema = found


# Parameters inside parameters: where one stands in a schema, and which values a call gives for it


def _parse(text: str, schema: Schema) -> Path:
    """Read `options.mode` or `edits[].path`; a name of the schema that holds a dot stays one name."""
    if text in (schema.get("properties") or ()):
        return (text,)
    names = ([name.rstrip("[]"), *[ENTRIES] * name.count(ENTRIES)] for name in text.split("."))
    return tuple(each for name in names for each in name)


def _spell(path: Path) -> str:
    return ".".join(path).replace(f".{ENTRIES}", ENTRIES)


def _edited(schema: Schema, path: Path, edit: Edit, root: Schema, depth: int = 0) -> Schema | None:
    """Edit one parameter in a copy of the schema; `None` when it has no such parameter.

    A reference on the way is replaced by what it refers to, so that others who refer to the same stay as they are.
    """
    if depth > DEEPEST:
        raise InputError(
            f"the schema around {_spell(path)!r} refers to itself", remedy="narrow a parameter further out"
        )
    schema = resolve(schema, root)
    found: Schema | None = None
    if (part := _property(schema, path[0])) is not None:
        if len(path) == 1:
            found = edit(schema, path[0])
        elif (inner := _edited(part, path[1:], edit, root, depth + 1)) is not None:
            found = _replace(schema, path[0], inner)
    for key in _BRANCHES:
        branches = schema.get(key)
        if not isinstance(branches, list):
            continue
        changed = [_edited(each, path, edit, root, depth + 1) if isinstance(each, dict) else None for each in branches]
        if any(each is not None for each in changed):
            kept = [old if new is None else new for old, new in zip(branches, changed, strict=True)]
            found = {**(found or schema), key: kept}
    return found


def _property(schema: Schema, name: str) -> Schema | None:
    found = schema.get("items") if name == ENTRIES else (schema.get("properties") or {}).get(name)
    return found if isinstance(found, dict) else None


def _has_always(schema: Schema, path: Path, root: Schema, depth: int = 0) -> bool:
    """Tell whether whatever a schema takes has this parameter: in no other form, such as `null`, and in no list."""
    if depth > DEEPEST or ENTRIES in path:
        return False
    schema = resolve(schema, root)
    part = _property(schema, path[0])
    if part is not None and (len(path) == 1 or _has_always(part, path[1:], root, depth + 1)):
        return True
    for key in _BRANCHES:
        branches = schema.get(key)
        if isinstance(branches, list) and branches:
            have = [isinstance(each, dict) and _has_always(each, path, root, depth + 1) for each in branches]
            if any(have) if key == "allOf" else all(have):
                return True
    return False


def _part(holder: Schema, last: str, root: Schema) -> Schema:
    return resolve(holder["items"] if last == ENTRIES else holder["properties"][last], root)


def _replace(holder: Schema, last: str, part: Schema) -> Schema:
    if last == ENTRIES:
        return {**holder, "items": part}
    return {**holder, "properties": {**holder["properties"], last: part}}


def _require_holder(inner: str, root: Schema, holder: Schema, name: str) -> Schema:
    """Require a part that has to hold a parameter: left out, it would take the parameter with it."""
    return _require(holder, name) if inner in (_part(holder, name, root).get("required") or ()) else holder


def _require(holder: Schema, name: str) -> Schema:
    required = holder.get("required") or []
    return holder if name in required else {**holder, "required": [*required, name]}


def _without(holder: Schema, name: str) -> Schema:
    """Drop a parameter, and what else demands it."""
    found = {**holder, "properties": {key: each for key, each in holder["properties"].items() if key != name}}
    if required := [each for each in found.pop("required", None) or [] if each != name]:
        found["required"] = required
    if isinstance(tied := holder.get("dependentRequired"), dict):
        found["dependentRequired"] = {
            key: [each for each in others if each != name] for key, others in tied.items() if key != name
        }
    return found


def _values_at(given: Any, path: Path) -> Iterator[Any]:
    """Yield what a call gives for a parameter; nothing when it leaves it out."""
    if not path:
        yield given
    elif path[0] == ENTRIES:
        # A single value where a list belongs is what some tools accept, so it is looked at too.
        for each in given if isinstance(given, list | tuple) else (given,):
            yield from _values_at(each, path[1:])
    elif isinstance(given, Mapping) and path[0] in given:
        yield from _values_at(given[path[0]], path[1:])


def _fill(given: Any, path: Path, value: Any) -> Any:
    """Put a value into a copy of the arguments; objects that lack on the way are made."""
    if not path:
        return value
    name, further = path[0], path[1:]
    if name == ENTRIES:
        return [_fill(each, further, value) for each in given] if isinstance(given, list | tuple) else given
    given = {} if given is None else given  # nothing at all is the same as left out
    if not isinstance(given, Mapping) or (name not in given and ENTRIES in further):
        return given  # a list that was left out has no entries to fill
    return {**given, name: _fill(given.get(name, {}), further, value)}


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; Python's `True == 1` is not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
