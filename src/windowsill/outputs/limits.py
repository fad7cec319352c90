"""How much of an output is shown at once."""

from __future__ import annotations

import msgspec

from windowsill.errors import SettingError

LEAST_LINE = 200
"""Characters below which a cut line would be little more than a note; the notes themselves are shorter."""

LEAST_BYTES = 1_024
"""Bytes below which an answer would be little more than the note how to read on."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The longest line in characters, and the most bytes of one view or answer."""

    line: int = 2_000
    bytes: int = 50 * 1024

    def __post_init__(self) -> None:
        """Refuse limits that leave no room for content."""
        for name, least in (("line", LEAST_LINE), ("bytes", LEAST_BYTES)):
            value = getattr(self, name)
            if value < least:
                raise SettingError(name, value, f"{least} or more")
