"""Patterns a model writes, made safe: matched line by line in linear time, or answered with a hint."""

from __future__ import annotations

import re
from typing import Protocol

from windowsill.errors import InputError
from windowsill.outputs.expression import Expression, Match
from windowsill.outputs.literal import Literal

MOST_CHARACTERS = 1_000
"""Longer than any pattern one would write for a log, short enough that compiling it takes no time."""

MOST_STEPS = 2_000
"""The largest compiled pattern: matching takes time in proportion to it when it cannot run as an automaton."""

_NO_LOOKING = "lookahead, lookbehind and atomic groups are not supported: match more, and pick from what is found"
_NO_BACKREFERENCE = "backreferences and this escape are not supported: search for one of the parts"
_HINTS = (
    (re.compile(r"\(\?(?:[=!>]|<[=!])"), _NO_LOOKING),
    (re.compile(r"invalid escape sequence: \\[1-9kg]"), _NO_BACKREFERENCE),
    (re.compile(r"repetition size"), "a repetition goes up to 1,000, and nested ones are multiplied"),
    (re.compile(r"too large"), "shorten it, or use smaller repetitions"),
)
_ANY_HINT = "write it in RE2 syntax, escape special characters with a backslash, or search with fixed=true"

_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_QUOTED_OR_ESCAPED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)
_LINE_ENDS = {"A": "^", "z": "$", "Z": "$"}
_NOT_BY_LINE = re.compile(r"\(\?[A-Za-z]*-[A-Za-z]*m")


class Pattern(Protocol):
    """A compiled pattern, which never matches a line end. Several threads may use it."""

    @property
    def programsize(self) -> int:
        """The steps it was compiled to."""

    @property
    def longest(self) -> int | None:
        """Bytes that no match exceeds; `None` when a match can be of any length."""

    def search(self, text: bytes, pos: int, endpos: int) -> Match | None:
        """The first match between two places; anchors and word boundaries see what is around them."""

    def matching_lines(self, text: bytes, pos: int, endpos: int) -> int:
        """How many lines match, between two places at which lines begin."""


def compiled(pattern: str, *, ignore_case: bool, fixed: bool) -> Pattern:
    """A pattern ready to search lines with; `InputError` with a hint when it cannot be one."""
    if not pattern:
        raise _refused(pattern, "it is empty", "give some text to search for")
    if len(pattern) > MOST_CHARACTERS:
        raise _refused(pattern[:40], f"it has {len(pattern):,} characters", f"give at most {MOST_CHARACTERS:,}")
    if "\n" in pattern:
        raise _refused(pattern, "it spans lines", "lines are searched one by one: search for one of its lines")
    if _NOT_BY_LINE.search(pattern) and not fixed:
        raise _refused(pattern, "it turns (?m) off", "lines are searched one by one: leave that flag out")
    if not ignore_case and (fixed or not _SPECIAL.search(pattern)):
        return _literal(pattern)
    return _compile(pattern, ignore_case=ignore_case, fixed=fixed)


def _literal(pattern: str) -> Pattern:
    try:
        return Literal(pattern)
    except UnicodeEncodeError:
        raise _no_text(pattern) from None


def _compile(pattern: str, *, ignore_case: bool, fixed: bool) -> Pattern:
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loads a library, on use

    options = re2.Options()
    options.never_nl = True
    # Nobody asks for groups, and finding them takes longer than the match.
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    text = re2.escape(pattern) if fixed else _QUOTED_OR_ESCAPED.sub(_by_line, pattern)
    try:
        made = re2.compile(f"(?m){text}", options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        raise _explained(
            pattern, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
    except UnicodeEncodeError:
        raise _no_text(pattern) from None
    if made.programsize > MOST_STEPS:
        raise _refused(pattern, "it is too large once compiled", "shorten it, or use smaller repetitions")
    return Expression(pattern, made, re2.compile(f"(?m)(?:{text}).*", options))


def _by_line(found: re.Match[str]) -> str:
    """The ends of the text are the ends of the line: an output is searched in parts whose ends mean nothing."""
    if found[1] is None:
        # Closed where the pattern left it open, so that more can follow.
        return found[0] if found[0].endswith(r"\E") else found[0] + r"\E"
    return _LINE_ENDS.get(found[1], found[0])


def _explained(pattern: str, reason: str) -> InputError:
    reason = reason.replace("(?m)", "", 1)
    hint = next((hint for sign, hint in _HINTS if sign.search(reason)), _ANY_HINT)
    return _refused(pattern, reason, hint)


def _no_text(pattern: str) -> InputError:
    return _refused(pattern, "it holds half a surrogate pair", "leave out what UTF-8 cannot hold")


def _refused(pattern: str, reason: str, hint: str) -> InputError:
    return InputError(f"the pattern {pattern!r} cannot be used: {reason}", remedy=hint, pattern=pattern)
