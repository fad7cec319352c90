"""The settings of a session: what a user states once, kept with the session."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.budget import HIGH, LOW, Size, tokens_of
from windowsill.errors import DamagedError, SettingError


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a session needs to know besides its messages. Every field may be stated when it is opened."""

    model: str | None = None
    window: int | None = None
    """The model's context window; wins over the table."""
    budget: Size | None = None
    """The most input tokens a request may have; without it the model's limits decide."""
    high: Size = HIGH
    low: Size = LOW
    strategy: str = "sliding-window"
    tokenizer: str | None = None
    """A vocabulary to count with, instead of the model's; then nothing is calibrated."""
    overhead: int = 0
    """Tokens that every request has besides what Windowsill sees."""
    format: str | None = None
    """The wire format; without it, that of the first message."""
    models: dict[str, dict[str, Any]] = {}
    """The user's own facts about models, by name."""

    def check(self) -> Settings:
        """The settings themselves; `SettingError` when one is out of its range."""
        if self.window is not None and self.window <= 0:
            raise SettingError("window", self.window, "tokens above 0")
        if self.overhead < 0:
            raise SettingError("overhead", self.overhead, "tokens, 0 or more")
        probe = self.window or 1_000_000
        if self.budget is not None:
            tokens_of(self.budget, probe, "budget")
        if tokens_of(self.low, probe, "low") > tokens_of(self.high, probe, "high"):
            raise SettingError("low", self.low, f"at most the high mark, {self.high!r}")
        return self


def read_settings(data: bytes, session: str) -> Settings:
    """The settings a session was stored with; `DamagedError` when they are none."""
    try:
        return msgspec.json.decode(data, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedError(
            f"the settings of session {session!r} are damaged: {error}",
            remedy="restore a backup; its messages can still be read with `windowsill sessions export`",
        ) from None


def changed(settings: Settings, stated: dict[str, Any]) -> Settings:
    """Settings with the stated ones (those that are not `None`) in place."""
    values = {key: value for key, value in stated.items() if value is not None}
    unknown = values.keys() - set(Settings.__struct_fields__)
    if unknown:
        name = min(unknown)
        raise SettingError(name, values[name], "one of: " + ", ".join(Settings.__struct_fields__))
    for name, value in values.items():
        try:
            msgspec.convert({name: value}, Settings)
        except msgspec.ValidationError as error:
            raise SettingError(name, value, f"another kind of value ({error})") from None
    return msgspec.structs.replace(settings, **values).check()
