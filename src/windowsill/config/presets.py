"""Presets: three ways to fill a window, each a size and two marks."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.errors import SettingError


class Preset(msgspec.Struct, frozen=True):
    """A budget for when no model says how large its window is, and the marks as shares of the budget or window."""

    tokens: int
    high: float
    low: float


PRESETS = {
    "balanced": Preset(8_000, 0.8, 0.7),
    "conservative": Preset(6_000, 0.6, 0.5),
    "aggressive": Preset(12_000, 0.9, 0.8),
}


def preset(name: str) -> Preset:
    """The preset of this name."""
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of: {', '.join(PRESETS)}")
    return PRESETS[name]


def expanded(values: dict[str, Any]) -> dict[str, Any]:
    """Stated values with the marks of the preset among them; a mark that is stated beside it wins."""
    name = values.get("preset")
    if not isinstance(name, str):
        return values
    chosen = preset(name)
    return {"high": chosen.high, "low": chosen.low, **values}
