"""Rules that narrow what a tool takes: allow-lists, parameters taken away, values that are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.errors import InputError
from windowsill.state.projection import known
from windowsill.state.projection.paths import Path, filled, same, spell, values_at
from windowsill.state.projection.refusal import Refusal, several, shown
from windowsill.state.runtime import Environment


class Narrow(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for one tool. Parameters inside others are written `options.mode`, those of entries `edits[].path`."""

    tool: str
    parameter: str = ""
    """What `allow` is about."""
    allow: tuple[Any, ...] | None = None
    """The only values it may have. It has to be given then, unless its default is among them."""
    remove: tuple[str, ...] = ()
    """Parameters that are neither shown nor accepted."""
    force: dict[str, Any] = {}
    """Parameters with a fixed value: filled in when left out, refused when another value is given."""
    environments: tuple[Environment, ...] = ("prod",)

    def __post_init__(self) -> None:
        where = f"the rule for {self.tool!r}"
        force = msgspec.structs.force_setattr
        force(self, "environments", known.environments(self.environments, f"{where}, environments"))
        force(self, "remove", known.listed(self.remove, f"{where}, remove"))
        if self.allow is not None:
            force(self, "allow", known.listed(self.allow, f"{where}, allow"))
            if not self.allow:
                raise InputError(f"{where} allows no value", remedy="keep the tool out by permission or environment")
        if bool(self.parameter) != (self.allow is not None):
            raise InputError(f"{where} has only one of parameter and allow", remedy="give both")
        if not (self.parameter or self.remove or self.force):
            raise InputError(f"{where} narrows nothing", remedy="give allow, remove or force")


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules of one environment demand of the calls of one tool."""

    environment: Environment
    allowed: tuple[tuple[Path, tuple[Any, ...]], ...] = ()
    removed: tuple[Path, ...] = ()
    forced: tuple[tuple[Path, Any], ...] = ()

    def fault(self, tool: str, arguments: Mapping[str, Any]) -> Refusal | None:
        """What speaks against these arguments."""
        for path in self.removed:
            if any(True for _ in values_at(arguments, path)):
                why = f"the parameter {spell(path)!r} is not available in {self.environment}"
                return self._refusal(tool, path, why, "leave it out")
        for path, value in self.forced:
            if any(not same(given, value) for given in values_at(arguments, path)):
                why = f"the parameter {spell(path)!r} is fixed in {self.environment}"
                return self._refusal(tool, path, why, f"give {shown(value)} or leave it out")
        for path, values in self.allowed:
            for given in values_at(arguments, path):
                if not any(same(given, value) for value in values):
                    why = f"{shown(given)} is not allowed for the parameter {spell(path)!r} in {self.environment}"
                    return self._refusal(tool, path, why, f"give one of {several(values)}")
        return None

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with every fixed value in its place, whatever stood there."""
        found = dict(arguments)
        for path, value in self.forced:
            found = filled(found, path, value)
        return found

    def _refusal(self, tool: str, path: Path, why: str, remedy: str) -> Refusal:
        return Refusal(tool=tool, rule="narrowed", parameter=spell(path), why=why, remedy=remedy)
