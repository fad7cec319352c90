"""Checks by code whether a task is done: the caller's validators, and the form that the result has to have."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec
from anyio import to_thread

from windowsill import schemas
from windowsill.engine.running import in_thread
from windowsill.errors import InputError
from windowsill.state.task import Criterion, Task

Said: TypeAlias = bool | str | None
Validator: TypeAlias = Callable[[str], Said | Awaitable[Said]]
"""Gets the result's text; gives `True` or `None` when the criterion holds, `False` or what is missing when not."""

LONGEST = 500
"""Characters of one complaint."""


async def unmet(task: Task, validators: Mapping[str, Validator], result: str) -> list[str]:
    """What code finds not to hold; a validator that fails says so, and its criterion does not hold."""
    missing = []
    for criterion in task.success_criteria:
        validator = validators.get(criterion.id) or validators.get(criterion.description)
        if validator is not None and (told := await _asked(validator, criterion, result)):
            missing.append(told[:LONGEST])
    if told := _form(task, result):
        missing.append(told[:LONGEST])
    return missing


def check_validators(criteria: Sequence[Criterion], validators: Mapping[str, Validator]) -> None:
    """`InputError` for a validator of a criterion that is none of these."""
    known = {name for each in criteria for name in (each.id, each.description)}
    for name in validators:
        if name not in known:
            listed = ", ".join(repr(each.description) for each in criteria) or "none"
            raise InputError(f"there is no criterion {name!r} to validate", remedy=f"the task has {listed}")


def check_form(task: Task) -> None:
    """`InputError` for a form that no result can be held against."""
    schema = task.output_format.schema
    if schema is None:
        return
    try:
        schemas.validator(schema).check_schema(schema)
    except schemas.unreadable() as error:
        said = schemas.fault_of(error)
        raise InputError(
            f"task.output_format.schema is no JSON Schema: {said}", remedy="mend it, or take it out"
        ) from None


async def _asked(validator: Validator, criterion: Criterion, result: str) -> str:
    try:
        if inspect.iscoroutinefunction(validator):
            said = await validator(result)
        else:
            said = await to_thread.run_sync(in_thread, partial(validator, result), abandon_on_cancel=True)
            if inspect.isawaitable(said):
                said = await said
    except Exception as error:  # noqa: BLE001 - a check that breaks has not found the criterion to hold
        return f"{criterion.description}: its check failed ({type(error).__name__}: {error})"
    if said is None or said is True:
        return ""
    return criterion.description if said is False else f"{criterion.description}: {said}"


def _form(task: Task, result: str) -> str:
    """What is wrong with the form of a result, where the task says what it has to be."""
    form = task.output_format
    if form.type != "json" and form.schema is None:
        return ""
    try:
        value = msgspec.json.decode(_unfenced(result))
    except msgspec.DecodeError as error:
        return f"the result has to be JSON and nothing else: {error}"
    return _schema_fault(form.schema, value) if form.schema is not None else ""


def _schema_fault(schema: dict[str, Any], value: Any) -> str:
    try:
        error = schemas.best_match(schemas.validator(schema).iter_errors(value))
    except Exception as broken:  # noqa: BLE001 - whatever is wrong with a schema, the result has not been found to fit
        return f"the schema of the result cannot be used ({type(broken).__name__}: {broken})"
    return "" if error is None else f"the result does not fit its schema at {error.json_path}: {error.message}"


def _unfenced(text: str) -> str:
    """JSON as models give it, without the fence around it."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
