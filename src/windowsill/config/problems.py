"""Errors that say in which file or variable a setting stands."""

from __future__ import annotations

from collections.abc import Iterable

from windowsill.errors import SettingError


def placed(error: SettingError, place: str, key: str | None = None) -> SettingError:
    """The same error with the place where the value was stated in front, and its key as it is written there."""
    found = SettingError(key or error.setting, error.value, error.allowed)
    found.what = f"{place}: {found.what}"
    found.about["place"] = place
    return found


def unknown(name: str, value: object, known: Iterable[str]) -> SettingError:
    """An error for a name that is none, with the nearest one first."""
    import difflib  # noqa: PLC0415  only needed for this error

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"{near[0]} (if that was meant), or " if near else ""
    return SettingError(name, value, f"{guess}one of: {', '.join(names)}")
