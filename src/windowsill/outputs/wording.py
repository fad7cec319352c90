"""What is written in place of tool output, and the tools it points to: one place, so that a view never disagrees."""

from __future__ import annotations

import re

from windowsill.history.own_tools import READ_TOOL

TRIMMED = "[tool output trimmed"
"""How a line begins that stands for an output."""


def trimmed(ref: str | None = None, size: str = "") -> str:
    """What stands for an output that is no longer shown; the ref is told only where its tool is offered."""
    return "; ".join(filter(None, (TRIMMED, f"ref={ref}" if ref else "", size))) + "]"


def cut_line(left: int) -> str:
    """The end of a line that was cut."""
    return f"... [+{left:,} characters]"


def read_on(ref: str | None, line: int, last: int) -> str:
    """The last line of a view that ends before its output does."""
    what = f"lines {line:,}-{last:,} are not shown" if line < last else f"line {line:,} is not shown"
    return _pointing(what, ref, f"offset={line}", "reads on")


def read_cut(ref: str | None, lines: int, line: int, column: int) -> str:
    """The last line of a view that shows every line, some of them cut."""
    what = f"{lines:,} lines are cut" if lines > 1 else "1 line is cut"
    return _pointing(what, ref, f"offset={line}, column={column}", "reads on")


def omitted(ref: str | None, first: int, last: int) -> str:
    """What stands between the head and the tail of a reduced output."""
    return _pointing(f"reduced: {last - first + 1:,} lines omitted", ref, f"offset={first}", "reads them")


def _pointing(what: str, ref: str | None, place: str, verb: str) -> str:
    return f'[{what}; {READ_TOOL}(ref_id="{ref}", {place}) {verb}]' if ref else f"[{what}]"


def unreferred(text: str, ref: str) -> str:
    """A text in which notes about an output no longer say how to read it on, and pointers not where to look."""
    name = re.escape(ref)
    told = re.sub(rf'; (?:ref={name}(?=[;\]])|{READ_TOOL}\(ref_id="{name}"[^()\n]*\) reads (?:on|them))', "", text)
    return _POINTER.sub(r"\1 were shown before]", told)


_POINTER = re.compile(r"^(\[lines \d+-\d+) as in o[\d.]+ lines \d+-\d+\]$", re.MULTILINE)
"""What `outputs.repeats` puts in the place of lines that were shown before."""
