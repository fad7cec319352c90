"""Reads the JSON object that a model wrote, and holds it against the user's schema."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from windowsill import schemas
from windowsill.writers.errors import UnusableError, note
from windowsill.writers.fences import fences
from windowsill.writers.parsing import Parsed, spoken

LONGEST_COMPLAINT = 200
"""Characters of what the validator says: it quotes the object, which may be large."""


def state(text: str, schema: dict[str, Any] | None) -> tuple[dict[str, Any], Parsed]:
    """The one JSON object of an answer: itself, and its text. It fulfils the schema, if there is one."""
    answer = spoken(text)
    found = fences(answer)
    source, beside = answer, ""
    if len(found) == 1:
        [fence] = found
        source, beside = answer[fence.inner : fence.close], answer[: fence.start] + answer[fence.end :]
    value, rest = _object(source)
    around = rest.strip() or beside.strip()
    if schema is not None:
        _fulfil(value, schema)
    notes = (note("", "outside-tags", "words beside the JSON were left out"),) if around else ()
    return value, Parsed(json.dumps(value, ensure_ascii=False), notes)


def _object(source: str) -> tuple[dict[str, Any], str]:
    start = source.find("{")
    if start < 0:
        what = "a list" if source.lstrip().startswith("[") else "no JSON object"
        raise UnusableError("not-an-object", f"the answer holds {what}", remedy="use a model that follows forms")
    if source.lstrip().startswith("["):
        raise UnusableError("not-an-object", "the answer holds a list", remedy="use a model that follows forms")
    try:
        value, length = _decoder.raw_decode(source[start:])
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise UnusableError("not-json", f"the answer is not JSON: {why}", remedy="ask again") from None
    rest = source[start + length :]
    if "{" in rest and _is_object(rest[rest.index("{") :]):
        raise UnusableError("json-twice", "the answer holds two JSON objects", remedy="ask again")
    return value, source[:start] + rest


def _is_object(source: str) -> bool:
    try:
        _decoder.raw_decode(source)
    except (ValueError, RecursionError):
        return False
    return True


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    """A number with a point or an exponent; one beyond all bounds would be written as `Infinity`, which is no JSON."""
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


_decoder = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _fulfil(value: dict[str, Any], schema: dict[str, Any]) -> None:
    try:
        validator = schemas.validator(schema)
        validator.check_schema(schema)
        errors = list(validator.iter_errors(value))
    except schemas.unreadable() as error:
        said = schemas.fault_of(error)[:LONGEST_COMPLAINT]
        raise UnusableError(
            "broken-schema", f"the schema cannot be used: {said}", remedy="correct the schema"
        ) from None
    if errors:
        first = min(errors, key=lambda each: each.json_path)
        raise UnusableError(
            "schema",
            f"the object breaks its schema at {first.json_path}: {first.message[:LONGEST_COMPLAINT]}",
            remedy="use a model that follows schemas",
        )
