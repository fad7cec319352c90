"""Dates in words, English and Japanese, as `YYYY-MM-DD`. A date without its year is not one: no clock is read here."""

from __future__ import annotations

import calendar
import re

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
MONTHS = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}

_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_FORMS = (
    re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?P<y>\d{4})\s*年\s*(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})\s*日"),
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<n>{_NAMES})\.?,?\s+(?P<y>\d{{4}})\b", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<n>{_NAMES})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})\b", re.IGNORECASE),
)


def last_date(text: str) -> str | None:
    """The last whole date in a text."""
    found = [(match.start(), date) for form in _FORMS for match in form.finditer(text) if (date := _date(match))]
    return max(found)[1] if found else None


def _date(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    year, day = int(parts["y"]), int(parts["d"])
    month = int(parts["m"]) if parts.get("m") else MONTHS[parts["n"].lower()]
    if not (1 <= month <= len(_MONTHS) and year > 0 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    return f"{year:04}-{month:02}-{day:02}"
