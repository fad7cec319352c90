"""Settings: what a user states in code, in the environment and in files, and what follows from it."""

from __future__ import annotations

from windowsill.config.load import Loaded, load
from windowsill.config.settings import (
    PRESETS,
    Preset,
    Profile,
    Settings,
    StatedSettings,
    apply_profile,
    profile_for,
    read_settings,
    states_high,
    with_changes,
)

__all__ = [
    "PRESETS",
    "Loaded",
    "Preset",
    "Profile",
    "Settings",
    "StatedSettings",
    "apply_profile",
    "load",
    "profile_for",
    "read_settings",
    "states_high",
    "with_changes",
]
