"""Least instances of the types an SDK declares for a request: its own list of what may be sent."""

from __future__ import annotations

import collections.abc
import os
import types
import typing
from typing import Any, Literal, Required, Union, get_args, get_origin

import pytest
from typing_extensions import get_type_hints, is_typeddict

WORDS = "some words"
"""What every text says, unless its field needs something else."""

TEXTS = {
    "id": "id_1",
    "call_id": "id_1",
    "tool_use_id": "id_1",
    "name": "look",
    "tool_name": "look",
    "url": "https://example.com/a.png",
    "image_url": "https://example.com/a.png",
    "data": "AA==",
    "file_data": "data:application/pdf;base64,AA==",
    "signature": "c2ln",
    "encrypted_content": "b3BhcXVl",
    "arguments": "{}",
}

SCHEMAS = {"input_schema", "parameters"}
"""Objects that must say of themselves that they are one."""

IMAGE = {"image_url": TEXTS["image_url"]}
MEANT: dict[Any, dict[str, Any]] = {
    "input_image": IMAGE,
    "computer_screenshot": IMAGE,
    "input_file": {"file_id": "file_1"},
    "file": {"file": {"file_id": "file_1"}},
    "computer_call": {"action": {"type": "screenshot"}},
    "function_call_output": {"call_id": "id_1"},
    "compaction": {"content": WORDS},
    "mcp_tool_result": {"content": WORDS},
    "tool_result": {"content": WORDS},
}
"""Fields that are not required by the type, and yet by the sense of it."""

FILES = (types.NoneType, os.PathLike, typing.IO[bytes])


def options(union: Any) -> list[Any]:
    """The typed dictionaries of a union, however nested."""
    if get_origin(union) in {Union, types.UnionType}:
        return [each for option in get_args(union) for each in options(option)]
    return [union] if is_typeddict(union) else []


def ways(declared: Any, field: str = "") -> list[Any]:
    """Least values of a declared type, one for each way in which one of its required fields may be given."""
    origin = get_origin(declared)
    if is_typeddict(declared):
        hints = get_type_hints(declared, include_extras=True)
        needed = {key: ways(get_args(hint)[0], key) for key, hint in hints.items() if get_origin(hint) is Required}
        first = {key: each[0] for key, each in needed.items()}
        first |= MEANT.get(first.get("type"), {})
        return [first, *({**first, key: way} for key, each in needed.items() for way in each[1:])]
    if origin is Literal:
        return [get_args(declared)[0]]
    if origin in {Union, types.UnionType}:
        # Files and paths are what the SDK turns into text by itself.
        return [way for option in get_args(declared) if option not in FILES for way in ways(option, field)]
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable) and not issubclass(origin, dict):
        return [[way] for way in ways(get_args(declared)[0])]
    plain: dict[Any, Any] = {str: TEXTS.get(field, WORDS), int: 1, float: 1.0, bool: False}
    return [plain.get(declared, {"type": "object"} if field in SCHEMAS else {})]


def variants(union: Any) -> list[Any]:
    """Least instances of each dictionary in a union, under the name of its type."""
    return [
        pytest.param(each, id=f"{option.__name__}-{number}")
        for option in options(union)
        for number, each in enumerate(ways(option))
    ]
