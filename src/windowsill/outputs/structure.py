"""Show an output above its limits by its structure: keys and first rows of JSON, a log by its ends and its errors."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windowsill.outputs.parts import Line
from windowsill.outputs.read import WIDEST
from windowsill.outputs.show import (
    LEAST_LINE,
    LEAST_OMITTED,
    Limits,
    Preview,
    byte_size,
    count_lines,
    cut_row,
    note_for,
    omitted_note,
    preview,
    rows_of,
)
from windowsill.text import cut_middle, keep_ends

ENDS = 50
"""Lines that are shown from each end of a log or a table."""

MOST_ERRORS = 30
"""Lines between the ends that are shown because they look like errors; of those that differ in numbers alone, one."""

HEAD_SHARE = 2 / 3
"""The part of the room that the beginning of a plain text takes: what it is about stands there."""

SAMPLE = 200
"""Lines by which a log or a table is told from a plain text."""

ALIKE = 0.5
"""The share of lines that begin alike in a log or a table."""

SAME_COLUMNS = 0.9
"""The share of lines that have the same number of separators in a table."""

BEGINNING = 12
"""Characters by which lines begin alike, numbers being equal."""

LONGEST_SEARCHED = 1_000
"""Characters of a line that are searched for an error."""

ERRORS_ROOM = 6_000
"""Bytes kept free for lines that look like errors, where the ends take all the room,"""

ERRORS_SHARE = 4
"""and at most one part in so many of the room."""

NOTE_ROOM = 240
"""Bytes kept free for the note between the ends."""

FIRST_ROWS = 3
"""Rows of JSON among which the room is shared when each is too large: one row alone shows no pattern."""

SHORTEST = 40
"""Bytes below which no value of JSON is cut: numbers, ids and flags stay whole."""

DEEPEST = 30
"""Levels of JSON that are looked into."""

_ERROR = re.compile(
    r"(?i:\b(?:error|exception|fatal|panic|traceback|critical|failed|failure|denied)\b)|(?:Error|Exception)\b"
    r"|エラー|失敗|例外"
)
_NUMBERS = re.compile(r"\d+")
_STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b)"
)


def outline(
    text: str, limits: Limits, *, ref: str | None = None, head: int = ENDS, tail: int = ENDS, fill: bool = False
) -> Preview | None:
    """Return the parts of an output that say most about it, or `None` when it can be shown as it is.

    JSON keeps its keys and the first `head` rows of each list; a log or a table its first and last lines and those that
    look like errors; any other text both its ends. With `fill`, as many rows or lines as the limits allow, and both
    ends of a line that is longer.
    """
    size = byte_size(text)
    rows = list(rows_of(text))
    if size <= limits.bytes and all(row.length <= limits.line for row in rows):
        return None
    if text[:200].lstrip()[:1] in ("{", "["):
        if size <= limits.bytes and _is_json(text):
            # JSON often stands on one line, whose length says nothing.
            return None
        if (found := _outline_json(text, limits, ref, sys.maxsize if fill else head)) is not None:
            return found
    if sum(min(byte_size(row.text), limits.line) + len(row.end) for row in rows) > limits.bytes - NOTE_ROOM:
        view = _outline_rows(rows, limits, ref, None if fill else (head, tail))
        if view is not None and byte_size(view.text) < size:
            return view
    if fill and size > limits.bytes:
        # A few lines, one of them longer than the room: nobody can read on, so its end is shown as well.
        ends = keep_ends(text, len(text) * (limits.bytes - NOTE_ROOM) // size)
        if byte_size(ends) <= limits.bytes:
            return Preview(ends, count_lines(ends))
    return preview(text, limits, ref=ref)


# JSON: each value is a slice of what the tool wrote, so that no number changes its spelling


def _outline_json(text: str, limits: Limits, ref: str | None, most: int) -> Preview | None:
    note = note_for("JSON reduced: rows or keys are omitted where it says so", ref, "offset=1", "reads on")
    room = limits.bytes - len(note) - 1
    try:
        reduced = _reduce(text.strip().encode(), room, most).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    view = f"{reduced}\n{note}"
    return Preview(view, reduced.count("\n") + 1) if byte_size(view) <= min(limits.bytes, byte_size(text) - 1) else None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.strip(), type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _reduce(raw: bytes, room: int, most: int, depth: int = 0) -> bytes:
    """Reduce a JSON value to about `room` bytes and `most` rows of a list; one that is small anyway stays."""
    if len(raw) <= max(room, SHORTEST) or depth > DEEPEST:
        return raw
    kind = raw[:1]
    if kind == b"[":
        return _reduce_list([bytes(row) for row in msgspec.json.decode(raw, type=list[msgspec.Raw])], room, most, depth)
    if kind == b"{":
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return _reduce_object({key: bytes(value) for key, value in fields.items()}, room, most, depth)
    if kind == b'"':
        words = msgspec.json.decode(raw, type=str)
        return msgspec.json.encode(cut_middle(words, max(1, len(words) * room // len(raw))))
    return raw


def _reduce_list(rows: Sequence[bytes], room: int, most: int, depth: int) -> bytes:
    kept: list[bytes] = []
    left = room - SHORTEST
    for row in rows[:most]:
        share = left // max(1, FIRST_ROWS - len(kept))
        shorter = _reduce(row, share, most, depth + 1) if len(kept) < FIRST_ROWS else row
        if len(shorter) + 2 > left and kept:
            break
        kept.append(shorter)
        left -= len(shorter) + 2
    if more := len(rows) - len(kept):
        kept.append(msgspec.json.encode(f"... {more:,} more of {len(rows):,}"))
    return b"[" + b",\n".join(kept) + b"]"


def _reduce_object(fields: dict[str, bytes], room: int, most: int, depth: int) -> bytes:
    keys = [msgspec.json.encode(key) for key in fields]
    left = room - SHORTEST - sum(len(key) + 3 for key in keys)
    shown = len(keys)
    while shown > 1 and left < SHORTEST * shown // 4:
        shown -= 1
        left += len(keys[shown]) + 3
    values = list(fields.values())[:shown]
    share = share_room([len(value) for value in values], max(left, 0))
    pairs = [key + b":" + _reduce(value, share, most, depth + 1) for key, value in zip(keys, values, strict=False)]
    if more := len(keys) - shown:
        pairs.append(b'"...":' + msgspec.json.encode(f"{more:,} more keys of {len(keys):,}"))
    return b"{" + b",\n".join(pairs) + b"}"


def share_room(sizes: Iterable[int], room: int) -> int:
    """Return the largest size at which cutting everything above it makes the sum fit `room`."""
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = room // (len(ordered) - place)
        if size > share:
            return share
        room -= size
    return ordered[-1] if ordered else 0


# Lines


def _outline_rows(
    rows: Sequence[Line], limits: Limits, ref: str | None, ends: tuple[int, int] | None
) -> Preview | None:
    regular = _is_regular(rows)
    if regular and ends is not None:
        head, tail = ends
    else:
        room = limits.bytes - NOTE_ROOM - (min(ERRORS_ROOM, limits.bytes // ERRORS_SHARE) if regular else 0)
        head = _count_within(rows, limits.line, int(room * HEAD_SHARE))
        tail = _count_within(reversed(rows[head:]), limits.line, int(room * (1 - HEAD_SHARE)))
    left = len(rows) - head - tail
    if left < LEAST_OMITTED:
        return None
    errors = _errors(rows, head, len(rows) - tail) if regular else {}
    count = sum(errors.values())
    what = f", {count:,} of which look{'s' if count == 1 else ''} like errors" if errors else ""
    note = omitted_note(ref, head + 1, head + left, what)
    shown = list(errors)[:MOST_ERRORS]
    narrow = (limits.bytes - NOTE_ROOM) // max(1, head + tail + len(shown)) // WIDEST
    for width in (limits.line, max(narrow, LEAST_LINE)):
        text = "".join(
            (
                *(cut_row(row, width) + row.end for row in rows[:head]),
                note + "\n",
                *(f"{number:,}: {cut_row(rows[number - 1], width)}\n" for number in shown),
                *(cut_row(row, width) + row.end for row in rows[len(rows) - tail :]),
            )
        )
        if byte_size(text) <= limits.bytes:
            return Preview(text, head + tail + len(shown))
    return None


def _is_regular(rows: Sequence[Line]) -> bool:
    """Tell whether most lines begin alike, or with a time or a level, as those of a log, a table or a listing do."""
    step = max(1, len(rows) // SAMPLE)
    sample = [row.text for row in rows[::step] if row.text.strip()]
    beginnings = Counter(_NUMBERS.sub("0", line[: 2 * BEGINNING])[:BEGINNING] for line in sample)
    alike = max((count for beginning, count in beginnings.items() if beginning.strip()), default=0)
    stamped = sum(_STAMPED.match(line) is not None for line in sample)
    commas = Counter(line.count(",") or line.count("\t") or line.count("|") for line in sample)
    columns = max((count for number, count in commas.items() if number), default=0)
    return max(alike, stamped) >= ALIKE * max(1, len(sample)) or columns >= SAME_COLUMNS * max(1, len(sample))


def _errors(rows: Sequence[Line], start: int, stop: int) -> dict[int, int]:
    """Return the numbers of lines that look like errors, with how many are like each but for numbers in them."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for number, row in enumerate(rows[start:stop], start + 1):
        if _ERROR.search(row.text[:LONGEST_SEARCHED]):
            same = first.setdefault(_NUMBERS.sub("0", row.text[:LONGEST_SEARCHED]), number)
            found[same] = found.get(same, 0) + 1
    # Where most lines speak of errors, as in a table with such a column, none stands out.
    return found if sum(found.values()) <= ALIKE * (stop - start) else {}


def _count_within(rows: Iterable[Line], width: int, room: int) -> int:
    count = 0
    for row in rows:
        room -= byte_size(cut_row(row, width)) + len(row.end)
        if room < 0:
            break
        count += 1
    return count
