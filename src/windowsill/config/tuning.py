"""Tuning: settings with the profile of their model applied."""

from __future__ import annotations

import msgspec

from windowsill import models
from windowsill.budget import HIGH, LOW
from windowsill.config import spelling
from windowsill.config.profiles import AUTO, OFF, Profile, has_profile, profile_for
from windowsill.config.settings import Settings
from windowsill.config.writing import BY_PROFILE, OFFLINE, writer_of
from windowsill.errors import UnknownModelError
from windowsill.models import Model

COUNTING = ("condense", "sliding-window")
"""Strategies whose `keep` counts the latest messages, as that of a profile does."""


def tuned(settings: Settings) -> Settings:
    """The settings as they hold for their model: marks, messages to keep and writer from its profile.

    What the settings state themselves wins: a mark that is not the default, a `keep` in the strategy, a writer. A
    profile is used where one is named (`auto` for the shipped one) or the user has one for the model.
    """
    model, named = settings.model, settings.profile
    wanted = model is not None and named != OFF and (named is not None or has_profile(model, settings.profiles))
    changes: dict[str, object] = {}
    if settings.writer == BY_PROFILE:
        # A model is asked only where somebody said so, never because a profile that ships has a name for one.
        changes["writer"] = (writer_of(_profile(settings, model).writer) if model else None) or OFFLINE
    if wanted and model is not None:
        profile = _profile(settings, model)
        if settings.high == HIGH and settings.low == LOW and profile.low is not None:
            changes |= {"high": profile.high, "low": profile.low}
        tables = {name: {"keep": profile.keep} for name in COUNTING}
        changes["strategy"] = spelling.with_tables(settings.strategy, tables)
    return msgspec.structs.replace(settings, **changes)


def _profile(settings: Settings, model: str) -> Profile:
    named = settings.profile
    return profile_for(
        model,
        settings.profiles,
        name="" if named is None or named in (AUTO, OFF) else named,
        high=settings.high,
        facts=_facts(settings, model),
    )


def _facts(settings: Settings, model: str) -> Model | None:
    try:
        return models.find(model, window=settings.window, overrides=settings.models)
    except UnknownModelError:
        return None
