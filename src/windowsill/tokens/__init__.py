"""The weight of a message: tokens, bytes and media."""

from __future__ import annotations

from windowsill.tokens.counters import (
    APPROXIMATIONS,
    FRAMINGS,
    VOCABULARIES,
    Counter,
    Framing,
    counter,
    framing,
    register,
)
from windowsill.tokens.media import IMAGE_RULES, ImageRule, image_rule
from windowsill.tokens.scale import KINDS, Calibration, Kind, Scale, Weight, kind_of, media_size

__all__ = [
    "APPROXIMATIONS",
    "FRAMINGS",
    "IMAGE_RULES",
    "KINDS",
    "VOCABULARIES",
    "Calibration",
    "Counter",
    "Framing",
    "ImageRule",
    "Kind",
    "Scale",
    "Weight",
    "counter",
    "framing",
    "image_rule",
    "kind_of",
    "media_size",
    "register",
]
