"""The tools that a model gets by phase, permissions, environment and room, and the calls that may be run.

A `Projection` holds the tools and the settings; `project(state)` decides. It reads no clock and writes nothing.
"""

from __future__ import annotations

from windowsill.state.tools.argument_checks import Refusal
from windowsill.state.tools.projection import HiddenTool, Projection, ToolChange, ToolDecision, ToolOffer, ToolSelection
from windowsill.state.tools.restrictions import Narrow

__all__ = ["HiddenTool", "Narrow", "Projection", "Refusal", "ToolChange", "ToolDecision", "ToolOffer", "ToolSelection"]
