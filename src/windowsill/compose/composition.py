"""The composition of a window: which part of it is filled with what, and the bar that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

import msgspec

from windowsill.budget import Budget
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Origin
from windowsill.tokens import Weight

BROUGHT = frozenset({Origin.RECALLED, Origin.DYNAMIC, Origin.STATE})
"""Messages that stand there for the step at hand, not because somebody said them."""

COLOURS = {
    "system": "#4c566a",
    "tools": "#7b88a1",
    "task": "#0a62b5",
    "pinned": "#5aa0e6",
    "user": "#1a7340",
    "assistant": "#7b3fb0",
    "outputs": "#c7680a",
    "recalled": "#a11650",
    "folded": "#8a7a00",
    "unseen": "#9aa0a6",
    "free": "#e6e9ee",
    "reserve": "#c9ced6",
}
"""The colours of the bar where no style sheet gives others; each part is named beside it too."""

PARTS = tuple(COLOURS)
"""The parts of a window in the order of the bar: what is sent, what is free, what is kept for the answer."""

MESSAGE_PARTS = PARTS[2:9]


def part_of(item: Item, task: int | None) -> str:
    """Return the part of the window that an item belongs to; `task` is the entry number of the task."""
    if item.fold:
        return "folded"
    if item.seq == task:
        return "task"
    if item.marks and item.pinned:
        return "pinned"
    if item.results:
        return "outputs"
    if item.origin in BROUGHT:
        return "recalled"
    return item.role


def weigh_parts(
    items: Iterable[Item], task: int | None, known: Mapping[str, Weight] | None = None
) -> dict[str, Weight]:
    """Add up what items weigh by part; `known` is what other items weigh already."""
    found: dict[str, list[Weight]] = {name: [weight] for name, weight in (known or {}).items()}
    for item in items:
        found.setdefault(part_of(item, task), []).append(item.weight)
    return {name: sum_weights(weights) for name, weights in found.items()}


class Composition(msgspec.Struct, frozen=True, kw_only=True):
    """Holds what fills a window: the tokens of each part, and the marks on it."""

    parts: dict[str, int]
    limit: int
    window: int
    low: int = 0
    high: int = 0

    @property
    def tokens(self) -> int:
        """The tokens of the request: everything but what is free and what is kept for the answer."""
        return sum(tokens for name, tokens in self.parts.items() if name not in ("free", "reserve"))

    @property
    def over(self) -> int:
        """The tokens above what a request may have."""
        return max(0, self.tokens - self.limit)

    def to_html(self, title: str) -> str:
        """Draw it as a bar with a legend, for a notebook: styles inline, no scripts."""
        whole = max(self.window, self.tokens, 1)
        bars = "".join(
            f'<div style="width:{100 * tokens / whole:.3f}%;background:{COLOURS[name]}" '
            f'title="{name}: {tokens:,} tokens"></div>'
            for name, tokens in self.parts.items()
            if tokens
        )
        marks = "".join(
            f'<div style="position:absolute;top:-3px;bottom:-3px;left:{100 * at / whole:.3f}%;'
            f'border-left:2px solid #b00020" title="{name}: {at:,} tokens"></div>'
            for name, at in (("reduced above", self.high), ("limit", self.limit))
            if 0 < at < whole
        )
        legend = "".join(
            f'<span style="margin-right:1em;white-space:nowrap"><span style="display:inline-block;width:.8em;'
            f'height:.8em;margin-right:.3em;background:{COLOURS[name]}"></span>{name} {tokens:,}</span>'
            for name, tokens in self.parts.items()
            if tokens
        )
        return (
            f'<div style="font:13px/1.5 system-ui,sans-serif;max-width:60em"><div>{escape(title)}</div>'
            f'<div role="img" aria-label="{escape(title, quote=True)}" style="position:relative;display:flex;'
            f'height:1.4em;margin:.3em 0">{bars}{marks}</div><div style="font-size:12px">{legend}</div></div>'
        )


def composition_of(
    weights: Mapping[str, Weight], view: View, budget: Budget, *, system: int = 0, tools: int = 0, unseen: int = 0
) -> Composition:
    """Put together what fills a window: messages weighed by part, and the tokens of what stands beside them."""
    sent = {name: view.tokens_of(weights[name]) if name in weights else 0 for name in MESSAGE_PARTS}
    leading = view.tokens_of(weights["system"]) if "system" in weights else 0
    parts = {"system": system + leading, "tools": tools, **sent, "unseen": max(0, unseen)}
    total = sum(parts.values())
    window = max(budget.window, budget.limit)
    parts["free"] = max(0, budget.limit - total)
    parts["reserve"] = max(0, window - max(budget.limit, total))
    return Composition(parts=parts, limit=budget.limit, window=window, low=budget.low, high=budget.high)
