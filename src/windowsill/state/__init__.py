"""The layered state of an agent: values, changes, what a model is shown of it, and which tools it gets."""

from __future__ import annotations

from windowsill.state.layers import LAYERS, State

__all__ = ["LAYERS", "State"]
