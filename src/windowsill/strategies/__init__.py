"""Planners that say what to fold, one file each, found by name or by dotted path."""

from __future__ import annotations

from windowsill.budget import Budget
from windowsill.history.folds import Brief, Proposal
from windowsill.history.view import Item, Unit, View
from windowsill.strategies.base import (
    Plan,
    ProviderRequestFields,
    Strategy,
    SummaryStrategy,
    fold_units,
    foldable_units,
    items_of,
    oldest_units,
)
from windowsill.strategies.registry import get, names, settings_of

__all__ = [
    "Brief",
    "Budget",
    "Item",
    "Plan",
    "Proposal",
    "ProviderRequestFields",
    "Strategy",
    "SummaryStrategy",
    "Unit",
    "View",
    "fold_units",
    "foldable_units",
    "get",
    "items_of",
    "names",
    "oldest_units",
    "settings_of",
]
