"""Views of outputs that are not in memory: only what is shown is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from windowsill.outputs.limits import Limits
from windowsill.outputs.lines import lines
from windowsill.outputs.output import Output
from windowsill.outputs.views import Row, beginning, check_head_and_tail, weight
from windowsill.outputs.wording import cut_line, omitted


def shown_of(output: Output, limits: Limits, ref: str | None) -> str:
    """The beginning of an output within the limits; all of it when it fits."""
    rows = list(_within(_rows(output, 1, output.lines, limits), limits.bytes))
    whole = len(rows) == output.lines and all(row.length <= limits.line for row in rows)
    if whole and sum(weight(row.text) + 1 for row in rows) <= limits.bytes:
        return "\n".join(row.text for row in rows)
    return beginning(rows, output.lines, limits, ref=ref).text


def middle_of(output: Output, head: int, tail: int, limits: Limits, ref: str | None) -> str:
    """Head and tail of an output, each within half the limits, with a note between them; all of it when it fits."""
    check_head_and_tail(head, tail)
    total = output.lines
    if total <= head + tail + 1:
        whole = list(_fitting(_rows(output, 1, total, limits), limits.bytes, limits.line))
        if len(whole) == total:
            return "\n".join(whole)
    head = min(head, total)
    tail = min(tail, total - head)
    room = (limits.bytes - len(omitted(ref, 1, total)) - 2) // 2
    first = list(_fitting(_rows(output, 1, head, limits), room, limits.line))
    last = list(_fitting(reversed(list(_rows(output, total - tail + 1, total, limits))), room, limits.line))[::-1]
    left = total - len(first) - len(last)
    note = [omitted(ref, len(first) + 1, len(first) + left)] if left else []
    return "\n".join((*first, *note, *last))


def _rows(output: Output, first: int, last: int, limits: Limits) -> Iterator[Row]:
    for line in lines(output, first, last, width=limits.line):
        yield Row(line.text, line.length)


def _within(rows: Iterable[Row], room: int) -> Iterator[Row]:
    """Rows until they fill the room; one more, so that a reader sees there is more."""
    for row in rows:
        yield row
        room -= weight(row.text) + 1
        if room < 0:
            return


def _fitting(rows: Iterable[Row], room: int, width: int) -> Iterator[str]:
    """The texts of rows, long ones cut, as long as they fit."""
    for row in rows:
        text = row.text if row.length <= width else row.text + cut_line(row.length - len(row.text))
        room -= weight(text) + 1
        if room < 0:
            return
        yield text
