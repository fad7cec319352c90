"""What a projection decided: the tools of a request, what was hidden and why, and which calls are let through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.models import Prices
from windowsill.state.projection.cost import Change, price
from windowsill.state.projection.forms import Form
from windowsill.state.projection.refusal import Refusal, named
from windowsill.state.runtime import Environment, Permission, Phase

Mode: TypeAlias = Literal["remove", "mask"]
Rule: TypeAlias = Literal["phase", "permission", "environment", "urgent", "budget"]

REMEDIES: dict[str, str] = {
    "phase": "go on with the tools of this phase",
    "permission": "do without it, or ask the user to grant the permission",
    "environment": "do without it here",
    "urgent": "the task is urgent: use one of the tools that are shown",
    "budget": "use one of the tools that are shown",
}


class Hidden(msgspec.Struct, frozen=True, gc=False):
    """A tool that may not be called, the first rule that kept it out, and why."""

    name: str
    rule: Rule
    why: str


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The decision as a plain value, to be recorded."""

    phase: Phase
    environment: Environment
    permissions: tuple[Permission, ...]
    urgent: bool
    mode: Mode
    names: tuple[str, ...]
    """Tools that may be called, in the given order."""
    hidden: tuple[Hidden, ...]
    narrowed: tuple[str, ...]
    """Those whose schema a rule changed."""
    tokens: int


class Projected:
    """The tools of a request. In mode `mask` they are all there, and `allows` refuses those that are hidden."""

    __slots__ = ("_forms", "_masking", "_places", "decided", "hidden", "names", "tokens", "tools")

    def __init__(
        self,
        decided: Decided,
        *,
        tools: tuple[Tool, ...],
        forms: Sequence[Form],
        places: Mapping[str, int],
        masking: int,
    ) -> None:
        self.decided = decided
        self.tools = tools
        """The definitions to send, in the given order."""
        self.names = decided.names
        """The tools that may be called."""
        self.hidden = decided.hidden
        self.tokens = decided.tokens
        """Of the definitions that are sent."""
        self._forms = forms
        self._places = places
        self._masking = masking

    def allows(self, name: str, arguments: Any) -> Refusal | None:
        """`None` when this call may be run; otherwise what to tell the model."""
        place = self._places.get(name)
        if place is None:
            remedy = f"the tools are {named(self.names, none='none at present')}"
            return Refusal(tool=name, rule="unknown", why="there is no such tool", remedy=remedy)
        hidden = next((each for each in self.hidden if each.name == name), None)
        if hidden is not None:
            return Refusal(tool=name, rule=hidden.rule, why=hidden.why, remedy=REMEDIES[hidden.rule])
        return self._forms[place].fault(arguments)

    def arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to run a call with: as given, and every fixed value in its place."""
        place = self._places.get(name)
        if place is None:
            raise InputError(f"there is no tool {name!r}", remedy="ask `allows` before running a call")
        return self._forms[place].fill(given)

    def change(self, before: Projected | None, *, cached_tokens: int, prices: Prices) -> Change:
        """What it costs to send these tools after those of `before`, with so many tokens in the provider's cache.

        `cached_tokens` is what the cache holds of the last request, its tool definitions included.
        """
        return price(
            changed=before is not None and before.tools is not self.tools and before.tools != self.tools,
            before=0 if before is None else before.tokens,
            after=self.tokens,
            cached_tokens=cached_tokens,
            masking=self._masking,
            prices=prices,
        )
