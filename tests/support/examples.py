"""The number of examples of an expensive property, as a share of what the profile of the run asks for."""

from __future__ import annotations

from hypothesis import settings

FEWEST = 5
"""Examples of the most expensive property in the quickest run: the simplest ones come first."""


def examples(share: float) -> int:
    """Return a share of the profile's examples: `make quick` tries fewer of each property, `make soak` more."""
    return max(FEWEST, round(settings().max_examples * share))
