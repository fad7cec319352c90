"""Validators for JSON Schemas that others wrote: nothing is fetched from the network or loaded too early."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from windowsill.extras import extra


def validator(schema: dict[str, Any]) -> Any:
    """Make a validator for a schema, of the draft that it names."""
    # Heavy, and few programs need them.
    with extra("agent", "checking a JSON Schema"):
        jsonschema, referencing = import_module("jsonschema"), import_module("referencing")
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # A registry of its own: the one by default fetches what a schema refers to.
    return kind(schema, registry=referencing.Registry())


def best_match(errors: Any) -> Any:
    """Return the most telling of a validator's errors, or `None`."""
    return import_module("jsonschema.exceptions").best_match(errors)


def unreadable() -> tuple[type[BaseException], ...]:
    """List what a validator raises when the schema itself is at fault."""
    exceptions = import_module("jsonschema.exceptions")
    unresolvable: type[BaseException] = import_module("referencing.exceptions").Unresolvable
    return exceptions.SchemaError, unresolvable, exceptions.UnknownType, RecursionError


def fault_of(error: BaseException) -> str:
    """Say in a few words what is wrong with a schema."""
    return str(getattr(error, "message", "") or type(error).__name__)
