"""What a message weighs: tokens, bytes and media."""

from __future__ import annotations

from windowsill.tokens.calibration import Calibration
from windowsill.tokens.counters import APPROXIMATIONS, VOCABULARIES, Counter, counter
from windowsill.tokens.framing import FRAMINGS, Framing, framing
from windowsill.tokens.media import IMAGE_RULES, ImageRule, image_rule
from windowsill.tokens.scale import Scale, media_size
from windowsill.tokens.weight import KINDS, Kind, Weight, kind_of

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
]
