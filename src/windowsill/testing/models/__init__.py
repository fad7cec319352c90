"""Models without a network for tests of agents: one that plays a script, and one that disturbs another."""

from windowsill.testing.models.chaos import KINDS, Chaos, Kind
from windowsill.testing.models.scripted import Scripted

__all__ = ["KINDS", "Chaos", "Kind", "Scripted"]
