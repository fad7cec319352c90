"""Regular expressions that take linear time whatever the pattern and the text: RE2, on bytes, loaded on use.

Not for a thread that a program does not wait for: one that ends while it is inside RE2 is aborted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

LARGEST_AUTOMATON = 64 << 20
"""Bytes for the states of one pattern: enough that none of ours falls back to the slow way of matching."""


class PatternError(ValueError):
    """RE2 refuses a pattern; the text is its reason."""


Match: TypeAlias = re.Match[bytes]
"""The place where a pattern was found, in bytes."""

Pattern: TypeAlias = re.Pattern[bytes]
"""A compiled pattern; several threads may use it. Anchors and word boundaries see what is around a stretch.

RE2's own types are not declared; what is used of them is as in `re`."""


def steps_of(pattern: Pattern) -> int:
    """Count the steps that a pattern was compiled to."""
    return int(cast("Any", pattern).programsize)


def compile_lines(source: str, *, ignore_case: bool = False) -> Pattern:
    """Compile a pattern that never matches a line end, and has no groups: finding them takes longer than the match."""
    options = _options()
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return _compile(source, options)


def compile_text(source: str, *, ascii_only: bool = False) -> Pattern:
    """Compile a pattern that sees characters; with `ascii_only` its classes know ASCII, and each other byte is one."""
    return _compile(source, _options(ascii_only=ascii_only, memory=LARGEST_AUTOMATON))


class WordSet:
    """Tells in one pass which of many short words and patterns a text holds."""

    def __init__(self, words: Sequence[tuple[str, bool]], patterns: Sequence[str] = ()) -> None:
        """Take the words, and for each whether it counts in whatever case; then the patterns."""
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loads a library, on use

        self._set = re2.Set.SearchSet(_options(ascii_only=True, memory=LARGEST_AUTOMATON))
        for word, any_case in words:
            self._set.Add((b"(?i)" if any_case else b"") + re2.escape(word.encode()))
        for pattern in patterns:
            self._set.Add(pattern.encode())
        self._set.Compile()

    def find(self, data: bytes) -> list[int]:
        """Return the places of the found words in the list; those of patterns follow."""
        found: list[int] | None = self._set.Match(data)
        return found or []


def _options(*, ascii_only: bool = False, memory: int = 0) -> Any:
    import re2  # noqa: PLC0415 - loads a library, on use

    options = re2.Options()
    options.log_errors = False
    if memory:
        options.max_mem = memory
    if ascii_only:
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def _compile(source: str, options: Any) -> Pattern:
    import re2  # noqa: PLC0415 - loads a library, on use

    try:
        made: Pattern = re2.compile(source.encode(), options)
    except UnicodeEncodeError:
        raise PatternError("it holds half a surrogate pair") from None
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return made
