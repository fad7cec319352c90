"""Shorten and flatten text, and load tables of it: what several rooms need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import takewhile
from typing import Any

SIGN = " [...] "
"""Stands where the middle of a text was left out."""

MOST_NESTED = 12
"""Levels of JSON that are told apart."""

_STOP = re.compile(r"[.!?][\"')]?\s|[。\uff01\uff1f]|\n")
"""The end of a sentence."""


def cut_middle(text: str, most: int) -> str:
    """Shorten a text to `most` characters: its beginning, a sign, its end."""
    if len(text) <= most:
        return text
    keep = max(0, most - len(SIGN))
    head = (keep + 1) // 2
    return text[:head].rstrip() + SIGN + text[len(text) - (keep - head) :].lstrip() if keep else ""


def cut_between_words(text: str, most: int) -> str:
    """Shorten a text like `cut_middle`, at the end of a sentence where one is near, else between words."""
    if len(text) <= most:
        return text
    keep = max(0, most - len(SIGN))
    head, tail = text[: (keep + 1) // 2], text[len(text) - keep // 2 :] if keep // 2 else ""
    ends = [end.end() for end in _STOP.finditer(head)]
    stop = ends[-1] if ends and 2 * ends[-1] > len(head) else head.rfind(" ")
    start = next((end.end() for end in _STOP.finditer(tail) if 2 * end.end() < len(tail)), tail.find(" ") + 1)
    # A language without spaces is cut where it is.
    head = head[:stop] if 2 * stop > len(head) else head
    tail = tail[start:] if 2 * start < len(tail) else tail
    return head.rstrip() + SIGN + tail.lstrip() if keep else ""


def keep_ends(text: str, keep: int) -> str:
    """Keep about `keep` characters from both ends, cut at near line breaks; a line between them counts the rest."""
    if keep >= len(text):
        return text
    head = text[: (keep + 1) // 2]
    tail = text[len(text) - keep // 2 :] if keep // 2 else ""
    # A line break in the outer half is near enough: whole lines are worth more than a few characters.
    if (cut := head.rfind("\n")) > len(head) // 2:
        head = head[:cut]
    if 0 <= (cut := tail.find("\n")) < len(tail) // 2:
        tail = tail[cut + 1 :]
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n")
    what = f"{lines:,} lines, {len(gone):,} characters" if lines > 1 else f"{len(gone):,} characters"
    return f"{head}\n[... data truncated: {what} omitted here ...]\n{tail}"


def one_line(text: str) -> str:
    """Put the words of a text on one line, so that it cannot look like a heading or an entry of its own."""
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """Put a text on one line without control characters, so that foreign words cannot steer a terminal."""
    line = one_line(text)
    return line if line.isprintable() else one_line("".join([each if each.isprintable() else " " for each in line]))


def shorten(text: str, length: int) -> str:
    """Return the beginning of a text as one printable line of at most `length` characters."""
    line = printable_line(text[: length * 4])
    return line if len(line) <= length else line[: length - 1] + "…"


def common_start(one: str, other: str) -> int:
    """Count the characters at the start of two texts that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 call` or `2,000 calls`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def time_text(at: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """Write a time in UTC; what is beyond every calendar, as milliseconds are, stays a number."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{at:g}"


def type_name(value: object) -> str:
    """Name the type of a value with its article: `a list`, `an int`."""
    name = type(value).__name__
    return f"{'an' if name.lstrip('_')[:1].lower() in tuple('aeiou') else 'a'} {name}"


def strings(value: Any) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value, in order, those of lists and objects in it too; not keys."""
    # A stack of our own: a model may nest arguments as deeply as the JSON reader allows.
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield repr(value)


def inline(value: Any, depth: int = 0) -> str:
    """Write a value of JSON without quotation signs; what is empty is left out."""
    if depth > MOST_NESTED or isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        told = ((one_line(key), inline(each, depth + 1)) for key, each in value.items())
        return ", ".join(f"{key} ({text})" if ", " in text else f"{key} {text}" for key, text in told if text)
    if isinstance(value, list):
        texts = [text for each in value if (text := inline(each, depth + 1))]
        return ("; " if any(", " in text for text in texts) else ", ").join(texts)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def table_cell(value: object) -> str:
    """Return a value as a table shows it: three digits of a share, thousands apart, a dash for nothing."""
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


@cache
def load_table(package: str, name: str) -> dict[str, Any]:
    """Load a table that comes with a package, once."""
    import tomllib  # noqa: PLC0415  loaded on use: importing the package stays cheap
    from importlib import resources  # noqa: PLC0415  as above

    return tomllib.loads(resources.files(package).joinpath(name).read_text("utf-8"))
