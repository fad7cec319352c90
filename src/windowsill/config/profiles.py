"""Profiles: marks, messages to keep and writer for a model, shipped by its size and overridden by the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill import models, providers
from windowsill.budget import HIGH, Size
from windowsill.errors import SettingError, UnknownModelError, log
from windowsill.models import Model
from windowsill.models.catalog import key, spellings

SMALLEST_THRESHOLD, LARGEST_THRESHOLD = 5, 100
INHERIT = -1
"""The threshold of a profile that leaves it to the global high mark."""

SMALL_WINDOW = 16_385
"""Windows up to 16k are reduced early; those of the models sold as 16k have one token more than 16,384."""

SMALL_WINDOW_THRESHOLD = 50

AUTO, OFF = "auto", "off"
"""Words in the place of a profile's name: the shipped one for the model, and none."""

ITSELF, SIBLING = "itself", "sibling"
"""Writers of the summary: the model of the session, or the cheap one of the same provider."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of one model, with everything it inherits."""

    name: str
    """The profile it comes from."""
    high: Size
    """The mark above which it is reduced: a share of what a request may have."""
    goal: float
    """The share that a reduction takes away."""
    keep: int
    """The latest messages that stay."""
    writer: str
    """The model that writes the summary."""

    @property
    def low(self) -> Size | None:
        """The mark at which a reduction ends; `None` when it does not follow from the high mark."""
        return self.low_under(self.high)

    def low_under(self, high: Size) -> Size | None:
        """Return the mark at which a reduction from this high mark ends; `None` where that is no single number."""
        if isinstance(high, int):
            return max(1, int(high * (1 - self.goal)))
        return round(high * (1 - self.goal), 4) if isinstance(high, float) else None


class ProfileFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile as it is written down; missing fields come from the one it inherits from."""

    threshold: int | float | None = None
    """Percent of what a request may have, 5 to 100; -1 for the global high mark."""
    goal: float | None = None
    keep: int | None = None
    writer: str | None = None
    inherits: str | None = None
    """Another profile, the user's own or a shipped one; without it, the shipped one for the model."""


SHIPPED = {
    "large": ProfileFields(threshold=80, goal=0.7, keep=5, writer=ITSELF),
    "balanced": ProfileFields(threshold=75, goal=0.75, keep=3, writer=SIBLING),
    "small": ProfileFields(threshold=60, goal=0.8, keep=3, writer=ITSELF),
    "gpt": ProfileFields(threshold=70, goal=0.75, keep=3, writer=SIBLING),
    "default": ProfileFields(threshold=75, goal=0.75, keep=3, writer=ITSELF),
}
"""By the size of a model in its family, and for the GPT family, whose models all share one."""


def profile_for(
    model: str,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    name: str = "",
    high: Size = HIGH,
    facts: Model | None = None,
) -> Profile:
    """Return the profile of a model: the user's own from `overrides` (by model), over the shipped one for its kind.

    `name` picks a profile in the place of the model's; `high` is the global mark that -1 and an invalid threshold fall
    back to; `facts` are those of the model where the table does not have them.
    """
    own = {each: _read(each, fields) for each, fields in (overrides or {}).items()}
    known = facts or _known(model)
    first = name or _of_model(model, own) or shipped_for(known)
    chain = _chain(first, own, shipped_for(known))
    merged: dict[str, Any] = {}
    for each in reversed(chain):
        merged |= {field: value for field, value in msgspec.structs.asdict(each).items() if value is not None}
    small = known is not None and known.window <= SMALL_WINDOW
    if small and not name and all(each.threshold is None for each in chain[:-1]):
        merged["threshold"] = SMALL_WINDOW_THRESHOLD
    writer = merged["writer"]
    if writer == SIBLING:
        writer = known and known.small_sibling
    return Profile(
        name=first,
        high=_high_mark(first, merged["threshold"], high),
        goal=merged["goal"],
        keep=merged["keep"],
        writer=model if writer in (ITSELF, None) else writer,
    )


def shipped_for(model: Model | None) -> str:
    """Return the name of the shipped profile for a model; `None` is a model that nobody knows."""
    if model is None or model.provider == "unknown":
        return "default"
    return "gpt" if model.provider == "openai" else model.size


def check_profiles(profiles: Mapping[str, Any], named: str = OFF) -> None:
    """Refuse profiles that cannot be used, and a `named` one that does not exist.

    A threshold out of range is only warned of, when it is used.
    """
    own = {name: _read(name, fields) for name, fields in profiles.items()}
    for name in [*own, *([named] if named not in (AUTO, OFF) else [])]:
        _chain(name, own, "default")


def has_profile(model: str, profiles: Mapping[str, Any]) -> bool:
    """Tell whether the user has a profile for this model."""
    return bool(profiles) and _of_model(model, profiles) is not None


def _read(name: str, fields: object) -> ProfileFields:
    place = f"profiles.{name}"
    if not isinstance(fields, Mapping):
        raise SettingError(place, fields, "a table of fields, such as threshold = 80")
    for field, value in fields.items():
        if field not in ProfileFields.__struct_fields__:
            raise SettingError.unknown(field, value, ProfileFields.__struct_fields__, table=place)
    try:
        profile = msgspec.convert(dict(fields), ProfileFields)
    except msgspec.ValidationError as error:
        field = str(error).rpartition("`$.")[2].rstrip("`")
        raise SettingError(f"{place}.{field}", fields.get(field), str(error).partition(" - at")[0]) from None
    if profile.goal is not None and not 0 < profile.goal < 1:
        raise SettingError(f"{place}.goal", profile.goal, "a share to take away, above 0 and below 1")
    if profile.keep is not None and profile.keep < 0:
        raise SettingError(f"{place}.keep", profile.keep, "a number of messages from 0 on")
    return profile


def _of_model(model: str, own: Mapping[str, Any]) -> str | None:
    by_key = {key(name): name for name in own}
    return next((by_key[spelling] for spelling in spellings(model) if spelling in by_key), None)


def _known(model: str) -> Model | None:
    try:
        return models.find(model)
    except UnknownModelError:
        return None


def _chain(first: str, own: Mapping[str, ProfileFields], last: str) -> list[ProfileFields]:
    """Return a profile and those it inherits from, itself first, a shipped one last."""
    chain: list[ProfileFields] = []
    passed: list[str] = []
    name = first
    while name in own and not (name in passed and name in SHIPPED):
        if name in passed:
            raise SettingError(f"profiles.{first}.inherits", name, f"no circle ({' > '.join([*passed, name])})")
        chain.append(own[name])
        passed.append(name)
        # A user's profile of a shipped name is laid over the shipped one.
        name = own[name].inherits or (name if name in SHIPPED else last)
    if name not in SHIPPED:
        setting = f"profiles.{passed[-1]}.inherits" if passed else "profile"
        raise SettingError(setting, name, f"one of: {', '.join(dict.fromkeys([*own, *SHIPPED]))}")
    return [*chain, SHIPPED[name]]


def _high_mark(name: str, threshold: float, high: Size) -> Size:
    if SMALLEST_THRESHOLD <= threshold <= LARGEST_THRESHOLD:
        return threshold / 100
    if threshold != INHERIT:
        log.warning(
            f"profile {name!r} has a threshold of {threshold}, not {SMALLEST_THRESHOLD} to {LARGEST_THRESHOLD} percent "
            f"or {INHERIT}; the global high mark {high!r} is used"
        )
    return high


OFFLINE = "offline"
BY_PROFILE = "profile"
"""The writer that leaves the choice of a model to the profile."""

ENDPOINTS = {spec.vendor: spec.name for spec in providers.specs() if spec.vendor}
"""The endpoint at which the models of a provider are asked."""


def writer_of(model: str) -> str | None:
    """Return the writer that asks this model, such as `gemini:gemini-2.5-flash`; `None` when its server is not known.

    A name that begins with an endpoint is a writer already.
    """
    if model == OFFLINE or model.partition(":")[0] in ENDPOINTS.values():
        return model
    try:
        endpoint = ENDPOINTS.get(models.find(model).provider)
    except UnknownModelError:
        return None
    return f"{endpoint}:{model}" if endpoint is not None else None
