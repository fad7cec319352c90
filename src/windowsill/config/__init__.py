"""Settings: what a user states in code, in the environment and in files, and what follows from it."""

from windowsill.config.loading import Loaded, load
from windowsill.config.presets import PRESETS, Preset
from windowsill.config.profiles import Profile, profile_for
from windowsill.config.settings import Settings, StatedSettings, changed, read_settings
from windowsill.config.tuning import tuned

__all__ = [
    "PRESETS",
    "Loaded",
    "Preset",
    "Profile",
    "Settings",
    "StatedSettings",
    "changed",
    "load",
    "profile_for",
    "read_settings",
    "tuned",
]
