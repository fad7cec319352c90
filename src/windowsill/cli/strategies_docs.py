"""What the settings of a strategy mean: the text under each field of its class."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap

import msgspec


def about(made: object) -> str:
    """What a strategy does, in one line."""
    return (inspect.getdoc(made) or "").partition("\n")[0]


def meanings(made: object) -> dict[str, str]:
    """What each setting means, in one line; nothing for those that have no text, or whose source is not there."""
    found: dict[str, str] = {}
    if not isinstance(made, type):
        return found
    for kind in reversed(made.__mro__):
        if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
            found |= _texts(kind)
    return found


def _texts(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.partition("\n\n")[0].split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
