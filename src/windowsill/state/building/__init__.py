"""Builds the context of a state, and updates of it, within a budget."""

from __future__ import annotations

from windowsill.state.building.builder import Builder
from windowsill.state.building.built import Built, LeftOut, Piece, Update
from windowsill.state.building.picks import Picks

__all__ = ["Builder", "Built", "LeftOut", "Picks", "Piece", "Update"]
