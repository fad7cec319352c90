"""The errors of Windowsill. Each carries what it is about and ends with the remedy.

WindowsillError
├── InputError          what was passed in cannot be used (also a ValueError)
│   ├── FormatError     a request or message that no known format explains
│   ├── SettingError    a setting out of its range
│   └── NotFoundError   no such session, message, fold, strategy (also a KeyError)
├── UnknownModelError   a model with no known window (also a LookupError)
├── BudgetError         what cannot be reduced is larger than the budget
├── FoldError           a fold that would break a unit, hide what is kept, or overlap another
└── StoreError          the place where sessions are kept
    ├── ConflictError   somebody else wrote first, and it cannot go behind that
    ├── LockedError     somebody else holds the lock
    └── DamagedError    what is stored is not what was written
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any


class WindowsillError(Exception):
    """The root: catch it to catch everything that Windowsill raises on purpose."""

    def __init__(self, what: str, *, remedy: str = "", **about: Any) -> None:
        self.what = what
        self.remedy = remedy
        self.about = about
        super().__init__(f"{what}; {remedy}" if remedy else what)

    def __str__(self) -> str:
        """One line: what is wrong, then what to do."""
        return f"{self.what}; {self.remedy}" if self.remedy else self.what

    def __reduce__(self) -> tuple[Any, ...]:
        """Make a copy in another process what it is here: not every error is made of its text alone."""
        return _copy_error, (type(self), self.args, vars(self))


def _copy_error(kind: type[WindowsillError], args: tuple[Any, ...], fields: dict[str, Any]) -> WindowsillError:
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


class InputError(WindowsillError, ValueError):
    """An input that cannot be used as it is."""


class FormatError(InputError):
    """A request or message that cannot be read; `where` names the place in it."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "", **about: Any) -> None:
        self.where = where
        super().__init__(f"{where}: {what}" if where else what, remedy=remedy, **about)


class SettingError(InputError):
    """A setting out of its range."""

    def __init__(self, setting: str, value: object, allowed: str) -> None:
        self.setting = setting
        self.value = value
        self.allowed = allowed
        super().__init__(f"setting {setting!r} is {value!r}", remedy=f"give {allowed}")

    @classmethod
    def unknown(cls, name: str, value: object, known: Iterable[str], *, table: str = "") -> SettingError:
        """Return the error for a name that does not exist, with the nearest known one first."""
        import difflib  # noqa: PLC0415 - only needed for this error

        names = list(known)
        near = difflib.get_close_matches(name, names, n=1)
        guess = f"{near[0]} (if that was meant), or " if near else ""
        return cls(f"{table}.{name}" if table else name, value, f"{guess}one of: {', '.join(names)}")

    def at(self, place: str, key: str | None = None) -> SettingError:
        """Return the same error with the place where the value was stated, and its key as it is written there."""
        found = SettingError(key or self.setting, self.value, self.allowed)
        found.what = f"{place}: {found.what}"
        found.about["place"] = place
        return found


class NotFoundError(InputError, KeyError):
    """There is no such session, message, fold or strategy."""


class UnknownModelError(WindowsillError, LookupError):
    """A model whose window is not known and was not stated."""


class BudgetError(WindowsillError):
    """A request whose irreducible parts are larger than the budget; `parts` maps each part to its tokens."""

    def __init__(self, what: str, *, wanted: int, available: int, parts: dict[str, int], remedy: str = "") -> None:
        self.wanted = wanted
        self.available = available
        self.parts = parts
        super().__init__(what, remedy=remedy)


class FoldError(WindowsillError):
    """A fold that cannot be made or removed."""


class StoreError(WindowsillError):
    """Something is wrong with the place where sessions are kept."""


class ConflictError(StoreError):
    """Somebody else appended first; `expected` and `found` are versions."""

    def __init__(self, session: str, expected: int, found: int) -> None:
        self.session = session
        self.expected = expected
        self.found = found
        super().__init__(
            f"session {session!r} is at version {found}, not {expected}",
            remedy="read what was added and append again",
        )


class LockedError(StoreError):
    """Somebody else holds the lock on a session; `holder` says who."""

    def __init__(self, session: str, holder: str) -> None:
        self.session = session
        self.holder = holder
        super().__init__(
            f"session {session!r} is locked by {holder}", remedy="wait for it, or release the lock by force"
        )


class DamagedError(StoreError):
    """Stored data that is not what was written."""


log = logging.getLogger("windowsill")
log.addHandler(logging.NullHandler())
