"""Native: leaves the work to the provider's own context editing and compaction, where it has any."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill import providers
from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.view import View
from windowsill.strategies.base import Plan, ProviderRequestFields, Strategy
from windowsill.strategies.sliding_window import SlidingWindow

CLEARING = "clear_tool_uses_20250919"
COMPACTION = "compact_20260112"

BETAS = {CLEARING: "context-management-2025-06-27", COMPACTION: "compact-2026-01-12"}
"""The values of the `anthropic-beta` header that allow these edits."""

SMALLEST_TRIGGER = 50_000
"""Anthropic takes no compaction that begins earlier."""


class Native(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks the provider to clear old tool results and to compact; what it did is recorded as a fold.

    Above the budget, and for formats whose provider does nothing of the kind, the sliding window takes over.
    """

    clear: bool = True
    """True to have old tool results cleared (Anthropic)."""
    keep: int = 3
    """The latest tool uses that are not cleared."""
    clear_at_least: int = 0
    """Tokens that clearing must free, or it is not worth the cache it costs."""
    exclude: tuple[str, ...] = ()
    """Tools whose results are never cleared."""
    compact: bool = True
    """True to have the conversation compacted (Anthropic, OpenAI Responses)."""
    smallest: int = SMALLEST_TRIGGER
    """The earliest compaction in tokens that Anthropic takes; below it only clearing is asked for."""
    instructions: str = ""
    """Instructions for the provider's summary (Anthropic)."""

    name = "native"

    def __post_init__(self) -> None:
        for name in ("keep", "clear_at_least", "smallest"):
            if getattr(self, name) < 0:
                raise SettingError(name, getattr(self, name), "a number from 0 on")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Nothing while the request still fits: the provider does its part when it gets it."""
        if budget.fixed + view.tokens() <= budget.limit:
            return Plan(notes=("left to the provider",))
        return SlidingWindow().plan(view, budget)

    def ask(self, format: str, budget: Budget) -> ProviderRequestFields | None:
        """Return the fields of a request in this format that make its provider act at the high mark."""
        form = providers.get(format).spec.context_management
        if form == "compaction" and self.compact:
            return ProviderRequestFields(
                fields={"context_management": [{"type": "compaction", "compact_threshold": budget.high}]}
            )
        edits = self._edits(budget) if form == "edits" else []
        if not edits:
            return None
        betas = ",".join(BETAS[edit["type"]] for edit in edits)
        return ProviderRequestFields(fields={"context_management": {"edits": edits}}, headers={"anthropic-beta": betas})

    def _edits(self, budget: Budget) -> list[dict[str, Any]]:
        edits: list[dict[str, Any]] = []
        if self.clear:
            edits.append(
                {
                    "type": CLEARING,
                    "trigger": {"type": "input_tokens", "value": budget.high},
                    "keep": {"type": "tool_uses", "value": self.keep},
                    **({"clear_at_least": _tokens(self.clear_at_least)} if self.clear_at_least else {}),
                    **({"exclude_tools": list(self.exclude)} if self.exclude else {}),
                }
            )
        # Clearing comes first and is cheaper: compaction takes over where it did not free enough.
        trigger = (budget.high + budget.limit) // 2 if edits else budget.high
        if self.compact and trigger >= self.smallest:
            wish = {"instructions": self.instructions} if self.instructions else {}
            edits.append({"type": COMPACTION, "trigger": _tokens(trigger), **wish})
        return edits


def _tokens(value: int) -> dict[str, Any]:
    return {"type": "input_tokens", "value": value}
