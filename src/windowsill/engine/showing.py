"""Shows the model its tools, and tells when they change: what is hidden by which rule, and what the change costs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from windowsill.engine.result import Event
from windowsill.engine.toolset import Toolset
from windowsill.messages import Tool
from windowsill.models import prices
from windowsill.session.session import Session
from windowsill.state.projection import Change, Projected
from windowsill.state.state import State


class Showing:
    """The tools of one run's requests."""

    def __init__(self, session: Session, toolset: Toolset, tell: Callable[[Event], None]) -> None:
        self._session = session
        self._toolset = toolset
        self._tell = tell
        self._before: Projected | None = None
        self.changes: list[Change] = []
        """What each change of the tools cost, and what masking them instead would have."""

    def tools(self, state: State) -> tuple[Tool, ...]:
        """The definitions for a request; a decision that differs from the one before is recorded."""
        shown = self._toolset.project(state)
        before, self._before = self._before, shown.given
        if before is None or before.decided != shown.given.decided:
            self._session.record_tools(shown.given.decided)
            # The definitions that are always there stand first, and stay in the cache.
            cached = max(0, self._session.fill[0] - shown.always.tokens) if before is not None else 0
            change = shown.given.change(before, cached_tokens=cached, prices=prices(self._session.model))
            self.changes.append(change)
            data = {"decided": msgspec.to_builtins(shown.given.decided), "cost": msgspec.to_builtins(change)}
            self._tell(Event(kind="tools_shown", text=", ".join(shown.given.names), data=data))
        return shown.tools
