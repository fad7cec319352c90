"""Check by code whether a task is done: the caller's validators, and the format that the result has to have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from windowsill import schemas, user_function
from windowsill.errors import InputError
from windowsill.state.layers import Criterion, Task

Verdict: TypeAlias = bool | str | None
Validator: TypeAlias = Callable[[str], Verdict | Awaitable[Verdict]]
"""Gets the result's text; returns `True` or `None` when the criterion holds, `False` or what is missing when not."""

MAX_CHARACTERS = 500
"""Characters of one complaint."""


async def unmet(task: Task, validators: Mapping[str, Validator], result: str) -> list[str]:
    """List what code finds not to hold; the criterion of a validator that fails does not hold."""
    missing = []
    for criterion in task.success_criteria:
        validator = validators.get(criterion.id) or validators.get(criterion.description)
        if validator is not None and (complaint := await _validate(validator, criterion, result)):
            missing.append(complaint[:MAX_CHARACTERS])
    if complaint := _format_fault(task, result):
        missing.append(complaint[:MAX_CHARACTERS])
    return missing


def check_validators(criteria: Sequence[Criterion], validators: Mapping[str, Validator]) -> None:
    """Raise `InputError` for a validator whose criterion the task does not have."""
    known = {name for each in criteria for name in (each.id, each.description)}
    for name in validators:
        if name not in known:
            listed = ", ".join(repr(each.description) for each in criteria) or "none"
            raise InputError(f"there is no criterion {name!r} to validate", remedy=f"the task has {listed}")


def check_output_schema(task: Task) -> None:
    """Raise `InputError` for an output schema that is not a JSON Schema."""
    schema = task.output_format.schema
    if schema is None:
        return
    try:
        schemas.validator(schema).check_schema(schema)
    except schemas.unreadable() as error:
        said = schemas.fault_of(error)
        raise InputError(
            f"task.output_format.schema is not a JSON Schema: {said}", remedy="mend it, or take it out"
        ) from None


async def _validate(validator: Validator, criterion: Criterion, result: str) -> str:
    try:
        verdict = await user_function.call(validator, result)
    except Exception as error:  # noqa: BLE001 - a check that breaks has not found the criterion to hold
        return f"{criterion.description}: its check failed ({type(error).__name__}: {error})"
    if verdict is None or verdict is True:
        return ""
    return criterion.description if verdict is False else f"{criterion.description}: {verdict}"


def _format_fault(task: Task, result: str) -> str:
    """Describe what is wrong with the format of a result; empty when it is right or the task states none."""
    wanted = task.output_format
    if wanted.type != "json" and wanted.schema is None:
        return ""
    try:
        value = msgspec.json.decode(_without_fence(result))
    except msgspec.DecodeError as error:
        return f"the result has to be JSON and nothing else: {error}"
    return _schema_fault(wanted.schema, value) if wanted.schema is not None else ""


def _schema_fault(schema: dict[str, Any], value: Any) -> str:
    try:
        error = schemas.best_match(schemas.validator(schema).iter_errors(value))
    except Exception as broken:  # noqa: BLE001 - whatever is wrong with a schema, the result has not been found to fit
        return f"the schema of the result cannot be used ({type(broken).__name__}: {broken})"
    return "" if error is None else f"the result does not fit its schema at {error.json_path}: {error.message}"


def _without_fence(text: str) -> str:
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
