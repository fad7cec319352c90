"""Read dates in English and Japanese: "in May 2023", "last week", 昨日, 5月8日."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?P<year>(?:1[89]|2[01])\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_CALENDAR = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})[-/.](?P<number>[01]?\d)[-/.](?P<day>[0-3]?\d)(?!\d)",
        r"(?:(?P<year>\d{4})\s*年\s*)?(?<!\d)(?P<number>1?\d)\s*月(?:\s*(?P<day>[0-3]?\d)\s*日)?",
        rf"{_YEAR}年",
        rf"\b{_DAY}\s+(?:of\s+)?{_NAME}(?:,?\s+{_YEAR})?\b",
        rf"\b{_NAME}\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?",
        rf"\b{_NAME},?\s+(?:of\s+)?{_YEAR}\b",
        # Without a year or a day beside it, "may" is hardly ever the month.
        rf"\b(?:in|during|since|last|this|early|late|mid)\s+{_NAME}\b",
        rf"\b(?:in|during|since|of)\s+{_YEAR}\b",
    )
)
_RELATIVE = {
    "today": ("day", 0),
    "yesterday": ("day", 1),
    "this week": ("week", 0),
    "last week": ("week", 1),
    "this month": ("month", 0),
    "last month": ("month", 1),
    "this year": ("year", 0),
    "last year": ("year", 1),
    "今日": ("day", 0),
    "本日": ("day", 0),
    "昨日": ("day", 1),
    "きのう": ("day", 1),
    "一昨日": ("day", 2),
    "おととい": ("day", 2),
    "今週": ("week", 0),
    "先週": ("week", 1),
    "先々週": ("week", 2),
    "今月": ("month", 0),
    "先月": ("month", 1),
    "今年": ("year", 0),
    "去年": ("year", 1),
    "昨年": ("year", 1),
}
_NAMED = re.compile(
    "|".join(rf"\b{word}\b" if word.isascii() else word for word in sorted(_RELATIVE, key=len, reverse=True))
)
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b")
_AGO_CJK = re.compile(r"(\d{1,3})(日|週間|か月|ヶ月|カ月|年)前")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNITS = {"日": "day", "週間": "week", "か月": "month", "ヶ月": "month", "カ月": "month", "年": "year"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LAST_WEEKDAY = re.compile(rf"\b(?:last|on|this past)\s+({'|'.join(_WEEKDAYS)})\b")


class TimeSpan(NamedTuple):
    """From a time up to another, in seconds since the epoch, UTC."""

    start: float
    stop: float


def time_spans(question: str, now: float) -> list[TimeSpan]:
    """Return the times a question names, as seen from `now`; a month or day without a year is the last that was."""
    text = _normalized(question)
    try:
        today = datetime.fromtimestamp(now, UTC)
        return sorted({TimeSpan(start.timestamp(), stop.timestamp()) for start, stop in _periods(text, today)})
    except (OverflowError, ValueError, OSError):
        # Before the first or after the last year of the calendar there is nothing to find.
        return []


def last_date(text: str) -> str | None:
    """Return the last date in a text as `YYYY-MM-DD`; a date without its year does not count: no clock is read."""
    words = _normalized(text)
    found = [
        (match.start(), f"{year:04}-{month:02}-{day:02}")
        for pattern in _CALENDAR
        for match in pattern.finditer(words)
        for year, month, day in [_parts(match)]
        if year and month and day and _exists(year, month, day)
    ]
    return max(found)[1] if found else None


def _normalized(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _parts(match: re.Match[str]) -> tuple[int, int, int]:
    """Return year, month and day; 0 for what is not named."""
    parts = match.groupdict()
    month = _MONTHS.index(parts["month"][:3]) + 1 if parts.get("month") else int(parts.get("number") or 0)
    return int(parts.get("year") or 0), month, int(parts.get("day") or 0)


def _exists(year: int, month: int, day: int) -> bool:
    return 0 < year <= MAXYEAR and 0 < month <= len(_MONTHS) and 0 < day <= monthrange(year, month)[1]


def _periods(text: str, today: datetime) -> Iterator[tuple[datetime, datetime]]:
    taken: list[tuple[int, int]] = []
    for pattern in _CALENDAR:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < stop for start, stop in taken):
                continue
            if period := _calendar_period(match, today):
                taken.append(match.span())
                yield period
    for match in _NAMED.finditer(text):
        yield _period(*_RELATIVE[match[0]], today)
    for match in _AGO.finditer(text):
        yield _period(match[2], _COUNTS.get(match[1]) or int(match[1]), today)
    for match in _AGO_CJK.finditer(text):
        yield _period(_UNITS[match[2]], int(match[1]), today)
    for match in _LAST_WEEKDAY.finditer(text):
        back = (today.weekday() - _WEEKDAYS.index(match[1]) - 1) % 7 + 1
        yield _period("day", back, today)


def _calendar_period(match: re.Match[str], today: datetime) -> tuple[datetime, datetime] | None:
    year, month, day = _parts(match)
    if not month and year:
        return _day(year, 1, 1), _day(year + 1, 1, 1)
    year = year or (today.year if (month, day or 1) <= (today.month, today.day) else today.year - 1)
    if year == MAXYEAR or not _exists(year, month, day or 1):
        return None
    if day:
        return _day(year, month, day), _day(year, month, day) + timedelta(days=1)
    return _day(year, month, 1), _day(year + month // 12, month % 12 + 1, 1)


def _period(unit: str, back: int, today: datetime) -> tuple[datetime, datetime]:
    """Return the day, week, month or year so many before the present one."""
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        start = midnight - timedelta(days=back)
        return start, start + timedelta(days=1)
    if unit == "week":
        start = midnight - timedelta(days=midnight.weekday() + 7 * back)
        return start, start + timedelta(days=7)
    months = max(today.year * 12 + today.month - 1 - back * (12 if unit == "year" else 1), 12)
    if unit == "year":
        return _day(months // 12, 1, 1), _day(months // 12 + 1, 1, 1)
    following = months + 1
    return _day(months // 12, months % 12 + 1, 1), _day(following // 12, following % 12 + 1, 1)


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
