"""A tool that could be shown, and the facts its definition does not tell."""

from __future__ import annotations

import msgspec

from windowsill.messages import Tool
from windowsill.state.projection import known
from windowsill.state.runtime import Environment, Permission

PRIORITY = 50
"""Of a tool whose priority nobody stated: the middle of 0 to 100."""


class Offered(msgspec.Struct, frozen=True):
    """A tool with what decides whether a model sees it."""

    tool: Tool
    category: str = ""
    """`read`, `write`, `readFile`, ...; empty takes it from the tool's name."""
    permissions: tuple[Permission, ...] = ()
    """All of them must be held."""
    environments: tuple[Environment, ...] | None = None
    """`None` is every environment."""
    priority: int = PRIORITY
    """The higher, the sooner it gets room."""

    def __post_init__(self) -> None:
        where = f"tool {self.tool.name!r}"
        force = msgspec.structs.force_setattr
        force(self, "permissions", known.permissions(self.permissions, f"{where}, permissions"))
        if self.environments is not None:
            force(self, "environments", known.environments(self.environments, f"{where}, environments"))

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name
