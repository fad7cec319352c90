"""Which tools a model gets: by phase, permissions, environment and room, and what a call to one may say.

A `Projection` holds the tools and the settings; `project(state)` decides. It reads no clock and writes nothing.
"""

from __future__ import annotations

from windowsill.state.projection.cost import Change
from windowsill.state.projection.narrowing import Narrow
from windowsill.state.projection.offered import Offered
from windowsill.state.projection.projected import Decided, Hidden, Projected
from windowsill.state.projection.projection import Projection
from windowsill.state.projection.refusal import Refusal

__all__ = ["Change", "Decided", "Hidden", "Narrow", "Offered", "Projected", "Projection", "Refusal"]
