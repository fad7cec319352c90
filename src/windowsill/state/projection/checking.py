"""Holds arguments against a JSON Schema, and says in words what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill import schemas
from windowsill.state.projection.paths import Schema
from windowsill.state.projection.refusal import LONGEST_VALUE, named, several, shown

LONGEST_COMPLAINT = 2 * LONGEST_VALUE
"""Characters of what the validator says: it quotes the argument, which may be large."""


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with arguments, where, and what to write instead."""

    parameter: str
    why: str
    remedy: str


def accepts(schema: Schema, value: Any, root: Schema) -> bool:
    """Whether a part of the schema `root` takes this value; one that cannot be read takes none."""
    try:
        return bool(schemas.validator(root).evolve(schema=schema).is_valid(value))
    except schemas.unreadable():
        return False


class Checker:
    """Checks the arguments of one tool; what it needs for that is loaded with the first call."""

    __slots__ = ("_made", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._made: Any = None

    def fault(self, arguments: Mapping[str, Any]) -> Fault | None:
        """The most telling thing that is wrong; `None` when the schema is fulfilled."""
        if not self._schema:
            return None
        try:
            if self._made is None:
                made = schemas.validator(self._schema)
                made.check_schema(self._schema)
                self._made = made
            error = schemas.best_match(self._made.iter_errors(arguments))
        except schemas.unreadable() as broken:
            said = schemas.fault_of(broken)[:LONGEST_COMPLAINT]
            return Fault("", f"its arguments cannot be checked: {said}", "tell the user that its schema is broken")
        return None if error is None else _worded(error)


def _worded(error: Any) -> Fault:
    place = _place(error.absolute_path)
    about = f"the parameter {place!r}" if place else "the call"
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            inner = f" in {place!r}" if place else ""
            lacking = f"the parameter {missing[0]!r} is missing{inner}"
            return Fault(f"{place}.{missing[0]}".lstrip("."), lacking, f"give {named(missing)}")
        case "additionalProperties" if error.validator_value is False:
            taken = error.schema.get("properties") or {}
            extra = [name for name in error.instance if name not in taken]
            return Fault(
                f"{place}.{extra[0]}".lstrip(".") if extra else place,
                f"{about} takes no {named(extra)}",
                f"it takes {named(taken)}",
            )
        case "enum":
            listed = several(error.validator_value)
            return Fault(place, f"{shown(error.instance)} is not allowed for {about}", f"give one of {listed}")
        case "const":
            why = f"{shown(error.instance)} is not allowed for {about}"
            return Fault(place, why, f"give {shown(error.validator_value)}")
        case "type":
            kinds = error.validator_value
            wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
            return Fault(
                place, f"{about} is {shown(error.instance)}, which is no {wanted}", f"give a value of type {wanted}"
            )
        case _:
            return Fault(place, f"{about}: {error.message[:LONGEST_COMPLAINT]}", "correct it and call again")


def _place(path: Any) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")
