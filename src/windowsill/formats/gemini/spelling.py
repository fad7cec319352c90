"""The two spellings of Gemini's field names: `camelCase` on the wire, `snake_case` in the Python SDK's dictionaries.

The API takes both, so what came in either is kept as it came; only a reader has to know that they are the same.
"""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec import Raw

T = TypeVar("T")

_JOINT = re.compile(r"_([a-z])")
_NULL = Raw(b"null")


def camel(fields: dict[str, T]) -> dict[str, T]:
    """The fields under their names on the wire, without those that are null: null means not there."""
    return {
        _JOINT.sub(lambda found: found.group(1).upper(), key) if "_" in key else key: value
        for key, value in fields.items()
        if value is not None and not (isinstance(value, Raw) and value == _NULL)
    }
