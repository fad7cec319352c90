"""Parameters inside parameters: where one stands in a schema, and which values a call gives for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from windowsill.errors import InputError

Schema: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]
Edit: TypeAlias = Callable[[Schema, str], Schema]
"""Takes the schema that holds a parameter, and the parameter's name in it; gives the holder changed."""

ENTRIES = "[]"
"""Every entry of a list: `edits[].path`."""

DEEPEST = 32
"""Steps into a schema, references included; one that goes on refers to itself."""

_BRANCHES = ("anyOf", "oneOf", "allOf")


def parse(text: str, schema: Schema) -> Path:
    """`options.mode`, `edits[].path`; a name of the schema that holds a dot stays one name."""
    if text in (schema.get("properties") or ()):
        return (text,)
    path: list[str] = []
    for name in text.split("."):
        bare = name.rstrip("[]")
        path += [bare, *[ENTRIES] * name.count(ENTRIES)]
    return tuple(path)


def spell(path: Path) -> str:
    """A path as it is written."""
    return ".".join(path).replace(f".{ENTRIES}", ENTRIES)


def edited(schema: Schema, path: Path, edit: Edit, root: Schema, depth: int = 0) -> Schema | None:
    """The schema with one parameter edited, as a copy along the way to it; `None` when it has no such parameter.

    A reference on the way is replaced by what it refers to, so that others who refer to the same stay as they are.
    """
    if depth > DEEPEST:
        raise InputError(f"the schema around {spell(path)!r} refers to itself", remedy="narrow a parameter further out")
    schema = resolved(schema, root)
    found = _edited_here(schema, path, edit, root, depth)
    for key in _BRANCHES:
        branches = schema.get(key)
        if not isinstance(branches, list):
            continue
        inner = [edited(each, path, edit, root, depth + 1) if isinstance(each, dict) else None for each in branches]
        if any(each is not None for each in inner):
            kept = [old if new is None else new for old, new in zip(branches, inner, strict=True)]
            found = {**(found or schema), key: kept}
    return found


def _edited_here(schema: Schema, path: Path, edit: Edit, root: Schema, depth: int) -> Schema | None:
    name, further = path[0], path[1:]
    key = "items" if name == ENTRIES else "properties"
    held = schema.get(key)
    if not isinstance(held, dict) or (name != ENTRIES and not isinstance(held.get(name), dict)):
        return None
    if not further:
        return edit(schema, name)
    inner = edited(held if name == ENTRIES else held[name], further, edit, root, depth + 1)
    if inner is None:
        return None
    return {**schema, key: inner if name == ENTRIES else {**held, name: inner}}


def resolved(schema: Schema, root: Schema) -> Schema:
    """A schema without a reference at its top."""
    for _ in range(DEEPEST):
        target = schema.get("$ref")
        if not (isinstance(target, str) and target.startswith("#/")):
            return schema
        found: Any = root
        for step in target[2:].split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            return schema
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    raise InputError("a reference in the schema leads back to itself", remedy="correct the schema of the tool")


def values_at(given: Any, path: Path) -> Iterator[Any]:
    """What a call gives for a parameter; nothing when it leaves it out."""
    if not path:
        yield given
    elif path[0] == ENTRIES:
        # A single value where a list belongs is what some tools accept, so it is looked at too.
        for each in given if isinstance(given, list | tuple) else (given,):
            yield from values_at(each, path[1:])
    elif isinstance(given, Mapping) and path[0] in given:
        yield from values_at(given[path[0]], path[1:])


def filled(given: Any, path: Path, value: Any) -> Any:
    """The arguments with a value put in, as a copy along the way; objects that lack on the way are made."""
    if not path:
        return value
    name, further = path[0], path[1:]
    given = {} if given is None and name != ENTRIES else given  # nothing at all is the same as left out
    if name == ENTRIES:
        return [filled(each, further, value) for each in given] if isinstance(given, list | tuple) else given
    if not isinstance(given, Mapping):
        return given
    if name not in given and ENTRIES in further:
        return given  # a list that was left out has no entries to fill
    return {**given, name: filled(given.get(name, {}), further, value)}


def certain(schema: Schema, path: Path, root: Schema, depth: int = 0) -> bool:
    """Whether whatever a schema takes has this parameter: in no other form, such as `null`, and in no list."""
    if depth > DEEPEST or ENTRIES in path:
        return False
    schema = resolved(schema, root)
    held = (schema.get("properties") or {}).get(path[0])
    if isinstance(held, dict) and (len(path) == 1 or certain(held, path[1:], root, depth + 1)):
        return True
    for key in _BRANCHES:
        branches = schema.get(key)
        each_has = isinstance(branches, list) and [
            isinstance(each, dict) and certain(each, path, root, depth + 1) for each in branches
        ]
        if each_has and (any(each_has) if key == "allOf" else all(each_has)):
            return True
    return False


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; Python's `True == 1` is not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
