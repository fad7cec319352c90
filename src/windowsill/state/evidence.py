"""L4: what was seen, found and measured."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from windowsill.state.element import Count, Element, Part, Seconds, Share

Source: TypeAlias = Literal["tool", "user", "system"]

OBSERVATION_SECONDS = 300.0
"""How long an observation holds: five minutes."""


class Observation(Element, frozen=True, kw_only=True):
    """What a tool, the user or the system showed."""

    result: Any
    source: Source = "tool"
    tool: str = ""
    relevance: Share | None = None
    ttl: Seconds = OBSERVATION_SECONDS


class Place(Part, frozen=True, kw_only=True):
    """Where in its source something was found."""

    page: Count | None = None
    section: str = ""
    at: float | None = None


class Retrieved(Element, frozen=True, kw_only=True):
    """What a search found."""

    content: str
    source: str
    query: str = ""
    relevance: Share = 0.0
    place: Place = Place()


class Citation(Element, frozen=True, kw_only=True):
    """Words of a source, and where they were used."""

    text: str
    source: str
    location: str = ""
    used_in: str = ""


class Measurement(Element, frozen=True, kw_only=True):
    """A number that was measured."""

    metric: str
    value: float
    unit: str = ""
    context: str = ""


class Evidence(Part, frozen=True, kw_only=True):
    """L4."""

    observations: tuple[Observation, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    citations: tuple[Citation, ...] = ()
    measurements: tuple[Measurement, ...] = ()
