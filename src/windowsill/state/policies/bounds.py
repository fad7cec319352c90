"""What the arguments of a call may name: paths, hosts, and how much of either."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from windowsill.state.policies.arguments import Mention, mentions, texts
from windowsill.state.policies.domains import Hosts
from windowsill.state.policies.paths import LONGEST_PATH, Fence
from windowsill.state.system import Constraints
from windowsill.state.tools.arguments import Refusal, quote
from windowsill.state.tools.projection import Offered, category_of

NOT_READING = frozenset({"write", "delete", "execute", "test", "deploy"})
"""Categories of tools that do not take in the file whose path they are given, however large it is."""


class Bounds:
    """The constraints on what a call names."""

    def __init__(self, constraints: Constraints, *, base: str | os.PathLike[str]) -> None:
        self._base = Path(base)
        self._forbidden = constraints.forbidden_paths
        self._hosts = None if constraints.allowed_domains is None else Hosts(constraints.allowed_domains)
        self._most = math.inf if constraints.max_file_bytes is None else constraints.max_file_bytes

    def crossings(self, offered: Offered, arguments: Mapping[str, Any]) -> Iterator[Refusal]:
        """Everything that speaks against these arguments."""
        name = offered.name
        for parameter, text in texts(arguments):
            size = len(text.encode("utf-8", "surrogatepass"))
            if size > self._most:
                why = f"the parameter {parameter!r} has {size:,} bytes, and {self._most:,} are allowed"
                remedy = "write less, or several smaller files"
                yield Refusal(tool=name, rule="max_file_bytes", parameter=parameter, why=why, remedy=remedy)
        reads = category_of(offered) not in NOT_READING
        fence = Fence(self._forbidden, base=self._base)
        for found in mentions(arguments, offered.tool.schema, name):
            fault = self._address(found) if found.kind == "url" else self._path(found, fence, reads=reads)
            if fault is not None:
                rule, why, remedy = fault
                yield Refusal(tool=name, rule=rule, parameter=found.parameter, why=why, remedy=remedy)

    def _address(self, found: Mention) -> tuple[str, str, str] | None:
        if self._hosts is None or (why := self._hosts.beyond(found.text)) is None:
            return None
        return "allowed_domains", why, "use an allowed domain, or ask the user to allow this one"

    def _path(self, found: Mention, fence: Fence, *, reads: bool) -> tuple[str, str, str] | None:
        if why := fence.crossing(found.text, wild=found.wild):
            return "forbidden_paths", why, "work on other files, or ask the user to do it"
        size = self._size(found.text) if reads and not found.wild else 0
        if size > self._most:
            why = f"{quote(found.text, LONGEST_PATH)} has {size:,} bytes, and {self._most:,} are allowed"
            return "max_file_bytes", why, "read a part of it with another tool, or another file"
        return None

    def _size(self, path: str) -> int:
        try:
            place = self._base / Path(path.strip().removeprefix("file://")).expanduser()
            return place.stat().st_size if place.is_file() else 0
        except (OSError, ValueError, RuntimeError):
            return 0  # what cannot be looked at has no size; the tool will say so itself
