"""Builds the text that a model reads of a state, and updates of it, within a budget."""

from __future__ import annotations

from windowsill.state.prompt.builder import Builder, Built, LeftOut, StateSettings, Update, read_state_settings
from windowsill.state.prompt.catalogue import Limits
from windowsill.state.prompt.choice import Piece

__all__ = ["Builder", "Built", "LeftOut", "Limits", "Piece", "StateSettings", "Update", "read_state_settings"]
