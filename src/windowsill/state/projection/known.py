"""The words a setting may use for phases, permissions and environments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from windowsill.errors import InputError
from windowsill.state.runtime import PERMISSIONS, PHASES, Environment, Permission, Phase

ENVIRONMENTS: tuple[Environment, ...] = ("dev", "staging", "prod")
"""`production` is accepted and becomes `prod`."""


def phase(given: str, where: str) -> Phase:
    """A phase that exists."""
    return cast("Phase", _known(given, PHASES, "phase", where))


def environment(given: str, where: str) -> Environment:
    """An environment that exists."""
    return cast("Environment", _known("prod" if given == "production" else given, ENVIRONMENTS, "environment", where))


def permissions(given: Iterable[str], where: str) -> tuple[Permission, ...]:
    """Permissions that exist, as they were given."""
    found = (_known(each, PERMISSIONS, "permission", where) for each in listed(given, where))
    return cast("tuple[Permission, ...]", tuple(found))


def environments(given: Iterable[str], where: str) -> tuple[Environment, ...]:
    """Environments that exist, each once."""
    return tuple(dict.fromkeys(environment(each, where) for each in listed(given, where)))


def listed(given: Iterable[str], where: str) -> tuple[str, ...]:
    """Several words; one bare word is a mistake that would be read letter by letter."""
    if isinstance(given, str):
        raise InputError(f"{where} is the text {given!r}", remedy=f"give a list: ({given!r},)")
    return tuple(given)


def _known(given: str, known: tuple[str, ...], kind: str, where: str) -> str:
    if given not in known:
        raise InputError(f"{where}: there is no {kind} {given!r}", remedy=f"use {', '.join(known)}")
    return given
