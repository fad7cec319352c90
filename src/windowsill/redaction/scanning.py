"""Patterns for secrets, compiled on use."""

from __future__ import annotations

from functools import cache

from windowsill.errors import InputError
from windowsill.regex import Pattern, PatternError, compile_ascii, compile_text


@cache
def compiled(source: str) -> Pattern:
    """Compile a pattern of ours, once."""
    return compile_ascii(source)


def users_own(source: str) -> Pattern:
    """Compile a pattern of the user's; `InputError` when RE2 refuses it."""
    try:
        return compile_text(source)
    except PatternError as error:
        what = f"the pattern {source!r} for secrets cannot be used ({error})"
        raise InputError(what, remedy="write it in RE2 syntax, without lookaround and backreferences") from None
