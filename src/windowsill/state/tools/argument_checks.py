"""Check the arguments of a call against its schema, and say in words why a call is not run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from windowsill import schemas
from windowsill.errors import InputError
from windowsill.text import type_name

LONGEST_VALUE = 80
"""Characters of a value that a refusal quotes: the model wrote it and knows it."""

LONGEST_COMPLAINT = 2 * LONGEST_VALUE
"""Characters of what the validator says: it quotes the argument, which may be large."""

MOST_NAMED = 20
"""Names or values that a refusal lists."""

UNREADABLE = "_text"
"""The key under which `ToolUse.input` keeps arguments that are not a JSON object."""

DEEPEST = 32
"""Steps into a schema, references included; one that goes on refers to itself."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a call is not run: which rule, what it found, what to do."""

    tool: str
    rule: str
    why: str
    remedy: str
    parameter: str = ""
    """The argument it is about; empty when it is about the call as such."""

    def __str__(self) -> str:
        """One line for the model."""
        return " ".join(f"{quote(self.tool)} was refused ({self.rule}): {self.why}; {self.remedy}".split())


def quote(value: Any, most: int = LONGEST_VALUE) -> str:
    """Write a value as JSON on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=True, default=repr)
    except (ValueError, RecursionError):
        text = type_name(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def list_values(values: Iterable[Any]) -> str:
    """Write values in a row, not too many."""
    return _row([quote(value) for value in values])


def list_names(names: Iterable[str], *, none: str = "nothing") -> str:
    """Write names in a row, not too many."""
    return _row([name if name.isidentifier() else quote(name) for name in names]) or none


def _row(texts: list[str]) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more


def resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Replace the reference at the top of a schema by what it refers to in `root`."""
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


def accepts(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Tell whether a part of the schema `root` takes this value; one that cannot be read takes none."""
    try:
        return bool(schemas.validator(root).evolve(schema=schema).is_valid(value))
    except schemas.unreadable():
        return False


class ArgumentChecker:
    """Checks the arguments of one tool. The validator is loaded with the first call."""

    __slots__ = ("_schema", "_tool", "_validator")

    def __init__(self, tool: str, schema: dict[str, Any]) -> None:
        self._tool = tool
        self._schema = schema
        self._validator: Any = None

    def not_an_object(self, arguments: Any) -> Refusal | None:
        """Refuse arguments that are not a JSON object."""
        takes = self._schema.get("properties") or {UNREADABLE}
        if isinstance(arguments, Mapping) and (arguments.keys() != {UNREADABLE} or UNREADABLE in takes):
            return None
        return self._refusal("", "its arguments are not a JSON object", "write them as one JSON object")

    def fault(self, arguments: Mapping[str, Any]) -> Refusal | None:
        """Refuse arguments that do not fulfil the schema, with the most telling thing that is wrong."""
        if not self._schema:
            return None
        try:
            if self._validator is None:
                validator = schemas.validator(self._schema)
                validator.check_schema(self._schema)
                self._validator = validator
            error = schemas.best_match(self._validator.iter_errors(arguments))
        except schemas.unreadable() as broken:
            why = f"its arguments cannot be checked: {schemas.fault_of(broken)[:LONGEST_COMPLAINT]}"
            return self._refusal("", why, "tell the user that its schema is broken")
        return None if error is None else self._refusal(*_explain(error))

    def _refusal(self, parameter: str, why: str, remedy: str) -> Refusal:
        return Refusal(tool=self._tool, rule="schema", parameter=parameter, why=why, remedy=remedy)


def _explain(error: Any) -> tuple[str, str, str]:
    """Say which parameter is wrong, why, and what to write instead."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    about = f"the parameter {place!r}" if place else "the call"
    value, wanted = error.instance, error.validator_value
    match error.validator:
        case "required":
            missing = [name for name in wanted if name not in value]
            inner = f" in {place!r}" if place else ""
            why = f"the parameter {missing[0]!r} is missing{inner}"
            return f"{place}.{missing[0]}".lstrip("."), why, f"give {list_names(missing)}"
        case "additionalProperties" if wanted is False:
            known = error.schema.get("properties") or {}
            extra = [name for name in value if name not in known]
            parameter = f"{place}.{extra[0]}".lstrip(".") if extra else place
            return parameter, f"{about} takes no {list_names(extra)}", f"it takes {list_names(known)}"
        case "enum":
            return place, f"{quote(value)} is not allowed for {about}", f"give one of {list_values(wanted)}"
        case "const":
            return place, f"{quote(value)} is not allowed for {about}", f"give {quote(wanted)}"
        case "type":
            kinds = wanted if isinstance(wanted, str) else " or ".join(wanted)
            return place, f"{about} is {quote(value)}, which is not of type {kinds}", f"give a value of type {kinds}"
        case _:
            return place, f"{about}: {error.message[:LONGEST_COMPLAINT]}", "correct it and call again"
