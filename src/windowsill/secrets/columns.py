"""Find secrets in columns: below the header of a CSV or Markdown table, and among the values of SQL's `INSERT`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from windowsill.secrets.detectors import Range, Secret, compiled, kind_under, plain_kind_under

LONGEST_LINE = 4_000
"""Bytes of a line that may be a row of a table."""

MOST_COLUMNS = 200

_NAMES = (
    r"(?:[a-z]+[_ -])?(?:passwords?|passwd|pwd|passphrase|passcode|secret|(?:api|access|private|secret)[_ -]?key"
    r"|(?:access|auth|refresh|api)[_ -]?token|token)"
)
_HEADER = rf"""(?im)^(?:[^\n]*[,;|\t])?[ "'`*]*{_NAMES}[ "'`*]*(?:[,;|\t][^\n]*)?\r?$"""
_RULE = re.compile(rb"[\s|:+-]*")
_CELL = re.compile(rb"""[ ]*+(?:"((?:[^"\n]|"")*+)"|'([^'\n]*+)'|([^,;|\t\n]*+))[ \r]*+([,;|\t]|$)""")
_INSERT = rf"""(?i)\binsert\s+into\s+[^\s(]+\s*\(([^()]*\b{_NAMES}\b[^()]*)\)\s*values\s*"""
_TUPLE = re.compile(rb"""\s*+,?\s*+\(((?:'(?:[^']|'')*+'|"[^"]*+"|[^()'"])*+)\)""")
_VALUE = re.compile(rb"""\s*+(?:N?'((?:[^']|'')*+)'|"([^"]*+)"|([^,]*+))\s*+(?:,|$)""")


def find_in_columns(data: bytes) -> Iterator[Secret]:
    """Yield the values in columns whose name is that of a secret."""
    yield from _in_tables(data)
    for match in compiled(_INSERT).finditer(data) if b"insert" in data.lower() else ():
        begin, stop = match.span(1)
        names = [data[start:end] for start, end in _cells(_VALUE, data, begin, stop)]
        place = match.end()
        while row := _TUPLE.match(data, place):
            yield from _row(data, names, _cells(_VALUE, data, *row.span(1)), sure=True)
            place = row.end()


def _in_tables(data: bytes) -> Iterator[Secret]:
    done = 0
    for match in compiled(_HEADER).finditer(data):
        start, end = match.span()
        if start < done or end - start > LONGEST_LINE:
            continue
        names = [data[low:high].strip(b" \"'`*") for low, high in _cells(_CELL, data, start, end)]
        if len(names) < 2:  # noqa: PLR2004 - one name is no table
            continue
        done = end
        while done < len(data):
            begin = done + 1
            found = data.find(b"\n", begin, begin + LONGEST_LINE)
            stop = found if found >= 0 else len(data) if len(data) - begin <= LONGEST_LINE else begin
            cells = _cells(_CELL, data, begin, stop)
            if len(cells) != len(names):
                break
            done = stop
            if not _RULE.fullmatch(data, begin, stop):
                yield from _row(data, names, cells, sure=False)


def _cells(pattern: re.Pattern[bytes], data: bytes, start: int, end: int) -> list[Range]:
    """Return the places of the cells of a row, without their quotes."""
    found: list[Range] = []
    while start < end and len(found) <= MOST_COLUMNS and (match := pattern.match(data, start, end)):
        group = next(number for number in (1, 2, 3) if match.span(number)[0] >= 0)
        low, high = match.span(group)
        found.append((low, low + len(data[low:high].rstrip())))
        if match.end() == start:
            break
        start = match.end()
    return found


def _row(data: bytes, names: list[bytes], cells: list[Range], *, sure: bool) -> Iterator[Secret]:
    kind_of = kind_under if sure else plain_kind_under
    for name, (start, end) in zip(names, cells, strict=False):
        if start < end and (
            kind := kind_of(name.decode("utf-8", "replace"), data[start:end].decode("utf-8", "replace"))
        ):
            yield Secret(kind, start, end)
