"""What something weighs, before any calibration."""

from __future__ import annotations

import msgspec


class Weight(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What something weighs; adding two gives the weight of both.

    Tokens are kept apart by kind of content, because the ratio between a vocabulary and what a provider bills differs
    by kind: a weight is counted once and stays right when the calibration learns.
    """

    prose: int = 0
    code: int = 0
    json: int = 0
    cjk: int = 0
    fixed: int = 0
    """Tokens that no calibration changes: pictures and documents by the provider's rule."""
    overhead: int = 0
    """Tokens of the framing around messages, calls and tools."""
    bytes: int = 0
    """Bytes on the wire."""
    media: int = 0
    """Pictures and documents."""
    media_bytes: int = 0
    """Their decoded size, all together."""

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.prose + other.prose,
            self.code + other.code,
            self.json + other.json,
            self.cjk + other.cjk,
            self.fixed + other.fixed,
            self.overhead + other.overhead,
            self.bytes + other.bytes,
            self.media + other.media,
            self.media_bytes + other.media_bytes,
        )

    def __sub__(self, other: Weight) -> Weight:
        return Weight(
            self.prose - other.prose,
            self.code - other.code,
            self.json - other.json,
            self.cjk - other.cjk,
            self.fixed - other.fixed,
            self.overhead - other.overhead,
            self.bytes - other.bytes,
            self.media - other.media,
            self.media_bytes - other.media_bytes,
        )
