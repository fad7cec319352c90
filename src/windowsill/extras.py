"""Packages that only some features need: a missing one is an error that says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from windowsill.errors import InputError


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Import the packages of an extra in this block; if one is missing, name the extra to install."""
    try:
        yield
    except ImportError as error:
        raise _missing(name, feature, error.name) from None


def require(name: str, feature: str, package: str) -> None:
    """Refuse to begin what needs a package of an extra if it is missing; the package is not loaded yet."""
    if find_spec(package) is None:
        raise _missing(name, feature, package)


def _missing(name: str, feature: str, package: str | None) -> InputError:
    # Windowsill is on no package index: a clone of it is installed.
    remedy = f"run in a clone of windowsill: pip install '.[{name}]'"
    return InputError(f"{feature} needs a package that is missing: {package}", remedy=remedy)
