"""How much of each list is shown at most, and how near to the goal it has to be."""

from __future__ import annotations

import msgspec

from windowsill.errors import SettingError


class Picks(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen from a state. Whatever is passed over stays in it."""

    relevance: float = 0.3
    """From 0 to 1; only what is above it has to do with the goal."""
    summaries: int = 5
    """The most relevant ones."""
    decisions: int = 5
    """Of those that are remembered, the most relevant ones."""
    facts: int = 10
    """Of those that are verified and relevant, the surest ones."""
    templates: int = 3
    """The most relevant ones."""
    short_term: int = 5
    """The newest observations that hold."""
    observations: int = 5
    """The newest pieces of evidence,"""
    seconds: float = 60.0
    """not older than this."""
    retrieved: int = 10
    """The most relevant ones."""
    latest: int = 3
    """Of errors, warnings, failures and decisions of the run, each."""

    def __post_init__(self) -> None:
        if not 0 <= self.relevance <= 1:
            raise SettingError("picks.relevance", self.relevance, "a number from 0 to 1")
        for name in self.__struct_fields__:
            if not getattr(self, name) >= 0:
                raise SettingError(f"picks.{name}", getattr(self, name), "0 or more")
