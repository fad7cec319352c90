"""Reading providers' overflow errors: they name the window that really holds."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

LONGEST = 20_000
"""Characters of a message that are read; error messages quote whole requests at times."""

SMALLEST_WINDOW = 256
"""A smaller number in such a message is an error code, not a window."""

MOST_OVER = 20
"""A number further above the limit than this is no token count: a time, a request id."""

_NUMBER = r"(\d[\d,_]*)"
_NUMBERS = re.compile(_NUMBER)


class _Forms(NamedTuple):
    """The words of `overflow.toml`."""

    limits: tuple[re.Pattern[str], ...]
    signs: re.Pattern[str]
    other: re.Pattern[str]


@cache
def _forms() -> _Forms:
    import tomllib  # noqa: PLC0415  only an error needs it
    from importlib import resources  # noqa: PLC0415  as above

    table = tomllib.loads(resources.files("windowsill.models").joinpath("overflow.toml").read_text("utf-8"))
    limits = (form.replace("N", _NUMBER).replace("#", r"\d[\d,_]*") for form in table["limits"])
    signs, other = (re.compile("|".join(table[name]), re.IGNORECASE) for name in ("signs", "other"))
    return _Forms(tuple(re.compile(form, re.IGNORECASE) for form in limits), signs, other)


def learn_window(message: str) -> int | None:
    """Read the limit in tokens that an overflow error names; `None` when it names none, or is another error."""
    text = message[:LONGEST]
    if _forms().other.search(text):
        return None
    for form in _forms().limits:
        match = form.search(text)
        if match:
            limit = int(match[1].replace(",", "").replace("_", ""))
            return limit if limit >= SMALLEST_WINDOW else None
    return None


def learn_count(message: str) -> int | None:
    """Read the tokens the provider counted in the refused request: the next number above the limit, if any."""
    window = learn_window(message)
    if window is None:
        return None
    numbers = (int(found.replace(",", "").replace("_", "")) for found in _NUMBERS.findall(message[:LONGEST]))
    return min((number for number in numbers if window < number <= window * MOST_OVER), default=None)


def is_overflow(message: str) -> bool:
    """Tell whether an error says that the request did not fit the model's window, or is too large to be sent."""
    text = message[:LONGEST]
    forms = _forms()
    return learn_window(text) is not None or (forms.signs.search(text) is not None and forms.other.search(text) is None)
