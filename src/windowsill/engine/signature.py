"""What a function takes, as a schema for a model and as a type that checks what the model passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from windowsill.errors import InputError


def arguments_of(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """The arguments of a function as a type; `InputError` for what no model can pass."""
    name = getattr(function, "__name__", "tool")
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise InputError(
            f"the signature of {name!r} cannot be read: {error}", remedy="annotate it, or give a definition"
        ) from None
    fields: list[Any] = []
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"{name!r} takes {parameter}, which a model cannot pass", remedy="take each argument by its name"
            )
        hint = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _default(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: value) if isinstance(value, (list, dict, set)) else value


def schema_of(arguments: type[msgspec.Struct], name: str) -> dict[str, Any]:
    """The JSON Schema of a type of arguments; `InputError` where a type has none."""
    try:
        (reference,), parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise InputError(
            f"tool {name!r} takes something that has no JSON Schema: {error}",
            remedy="use text, numbers, lists, dicts, Literals or structs",
        ) from None
    # By what the schema calls it: that of a lambda is not its name.
    own = parts.pop(reference["$ref"].removeprefix("#/$defs/"))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": own["properties"],
        "required": own["required"],
        "additionalProperties": False,
    }
    return {**schema, "$defs": parts} if parts else schema
