"""The settings of a session, stated once and kept with it: presets, the line of strategies, and profiles.

A profile has marks, messages to keep and the writer for a model; it is shipped by the model's size, and the user may
override it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from windowsill import providers
from windowsill.budget import HIGH, WARN, Size, tokens_of
from windowsill.errors import DamagedError, SettingError, log
from windowsill.files.folder import Folder
from windowsill.models import Model, find_known
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
    known = facts or find_known(model)
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
    known = find_known(model)
    endpoint = ENDPOINTS.get(known.provider) if known is not None else None
    return f"{endpoint}:{model}" if endpoint is not None else None


_PLAIN = re.compile(r"[^\s,+=\[\]{}\"](?:[^,+=\[\]{}\"\n]*[^\s,+=\[\]{}\"])?")
"""Text that is read back as it is without being quoted."""

_OPENING, _CLOSING = "[{", "]}"


class Preset(msgspec.Struct, frozen=True):
    """A budget for when no model says how large its window is, and the marks as shares of the budget or window."""

    tokens: int
    high: float
    low: float


PRESETS = {
    "balanced": Preset(8_000, 0.8, 0.7),
    "conservative": Preset(6_000, 0.6, 0.5),
    "aggressive": Preset(12_000, 0.9, 0.8),
}


def find_preset(name: str) -> Preset:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of: {', '.join(PRESETS)}")
    return PRESETS[name]


def with_preset(values: dict[str, Any]) -> dict[str, Any]:
    """Return stated values with the marks of their preset; a mark that is stated beside it wins."""
    name = values.get("preset")
    if not isinstance(name, str):
        return values
    preset = find_preset(name)
    return {"high": preset.high, "low": preset.low, **values}


Scope: TypeAlias = Literal["session", "project", "user"]

TABLES = "strategies"
"""Stated beside the fields: settings of strategies by name, which become part of the strategy's line."""

LONGEST_WAIT = 86_400
"""Seconds in a day: more would mean for ever, which no turn should wait."""

SMALLEST, LARGEST = 1_000, 10_000_000
"""Tokens of any window there is, where nobody says how large it is."""


DEFAULT_STRATEGY = "economy"


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything a session needs besides its messages. Every field may be stated when it is opened."""

    model: str | None = None
    window: int | None = None
    """The model's context window; wins over the table."""
    budget: Size | None = None
    """The most input tokens a request may have; without it the model's limits decide."""
    high: Size | None = None
    """Above this the view is reduced: tokens, or a share of what a request may have; without it, the model's profile
    decides."""
    low: Size | None = None
    """A reduction ends here; without it, at a share of the high mark."""
    warn: Size = WARN
    """Above this a warning is noted, and summaries are prepared."""
    preset: str | None = None
    """Marks, and a budget where no model says how large its window is, under one name."""
    profile: str | None = None
    """A profile's name, `auto` for the shipped one of the model with its goal, or `off`; without it, the user's own for
    the model, or the high mark and `keep` of the shipped one."""
    profiles: dict[str, dict[str, Any]] = {}
    """The user's own profiles, by model or by a name of their own."""
    strategy: str = DEFAULT_STRATEGY
    writer: str = "offline"
    """The writer of summaries: `offline`, or a model such as `anthropic:claude-haiku-4-5`."""
    wait: float = 30.0
    """Seconds that a request may wait for a model's summary when it would not fit without it."""
    tokenizer: str | None = None
    """A vocabulary to count with, instead of the model's; then nothing is calibrated."""
    overhead: int = 0
    """Tokens of every request that Windowsill does not see."""
    format: str | None = None
    """The wire format; without it, that of the first message."""
    models: dict[str, dict[str, Any]] = {}
    """The user's own facts about models, by name."""
    user: str | None = None
    """The owner of the session,"""
    project: str | None = None
    """and its project: sessions that share one can be searched together."""
    scope: Scope = "session"
    """The reach of a search: this session alone, or also those of the same project or user."""
    embedder: Literal["wordllama"] | None = None
    """The model of vectors, so that a search finds by meaning too; words alone without it."""
    outputs: bool = True
    """Limit what requests show of tool outputs, as the strategy `outputs` does, whatever the strategy is."""
    recall: Size | None = None
    """The most tokens that a request recalls from hidden messages for the step at hand; none without it."""
    layers: Size | None = None
    """The most tokens of the layered state in a request; none without it, except by `layered`."""
    state: dict[str, Any] = {}
    """The form in which the layered state is shown: `format` (xml or markdown), `picks` and `shares`."""
    files: Folder | None = None
    """The folder whose files are recorded with checkpoints and brought back with them; a path, or a `Folder`."""

    def check(self) -> Settings:
        """Return the settings themselves; `SettingError` when one is out of its range."""
        if self.window is not None and self.window <= 0:
            raise SettingError("window", self.window, "tokens above 0")
        if self.overhead < 0:
            raise SettingError("overhead", self.overhead, "tokens, 0 or more")
        probe = self.window or 1_000_000
        for name in ("budget", "recall", "layers"):
            if getattr(self, name) is not None:
                tokens_of(getattr(self, name), probe, name)
        high = HIGH if self.high is None else self.high
        tokens_of(high, probe, "high")
        if self.low is not None and all(
            tokens_of(self.low, base, "low") > tokens_of(high, base, "high") for base in self._bases()
        ):
            raise SettingError("low", self.low, f"at most the high mark, {high!r}")
        tokens_of(self.warn, probe, "warn")
        if not 0 <= self.wait <= LONGEST_WAIT:
            raise SettingError("wait", self.wait, f"seconds from 0 to {LONGEST_WAIT:,}")
        if self.scope != "session" and getattr(self, self.scope) is None:
            raise SettingError("scope", self.scope, f"session, as no {self.scope} is stated")
        if self.preset is not None:
            find_preset(self.preset)
        check_profiles(self.profiles, self.profile or OFF)
        check_models(self.models)
        return self

    def _bases(self) -> tuple[int, ...]:
        """Return the sizes that marks may be shares of: one in tokens and one as a share go together for some."""
        if isinstance(self.budget, int):
            return (min(self.budget, self.window or self.budget),)
        return (self.window,) if self.window is not None and self.budget is None else (SMALLEST, LARGEST)

    @property
    def is_model_known(self) -> bool:
        """True when the window of the model is in the table, or in `models`."""
        return find_known(self.model, overrides=self.models) is not None


class StatedSettings(TypedDict, total=False):
    """The settings as a caller states them, by name; `None` is not stated. See `Settings` for what each is."""

    model: str | None
    window: int | None
    budget: Size | None
    high: Size | None
    low: Size | None
    warn: Size | None
    preset: str | None
    profile: str | None
    profiles: dict[str, dict[str, Any]] | None
    wait: float | None
    tokenizer: str | Callable[[str], int] | None
    overhead: int | None
    format: str | None
    models: dict[str, dict[str, Any]] | None
    user: str | None
    project: str | None
    scope: Scope | None
    embedder: Literal["wordllama"] | None
    outputs: bool | None
    recall: Size | None
    layers: Size | None
    state: dict[str, Any] | None
    files: str | Path | Folder | None
    strategies: dict[str, dict[str, Any]] | None
    """Settings of strategies by name."""


def read_settings(data: bytes, session: str) -> Settings:
    """Return the settings a session was stored with; `DamagedError` when they cannot be read."""
    try:
        return msgspec.json.decode(data, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedError(
            f"the settings of session {session!r} are damaged: {error}",
            remedy="restore a backup; its messages can still be read with `windowsill sessions export`",
        ) from None


def with_changes(settings: Settings, stated: dict[str, Any]) -> Settings:
    """Return the settings with the stated ones (those that are not `None`) in place.

    Besides the fields, `strategies` may be stated: a table of settings for each strategy. A list of strategies is a
    pipeline of them.
    """
    values = with_preset({key: value for key, value in stated.items() if value is not None})
    tables = check_tables(values.pop(TABLES, {}))
    line = values.get("strategy", settings.strategy)
    if isinstance(line, (list, tuple)) and line and all(isinstance(each, str) for each in line):
        line = "+".join(line)
    if isinstance(line, str) and ("strategy" in values or tables):
        values["strategy"] = with_tables(line, tables)
    values = {name: check_value(name, value) for name, value in values.items()}
    return _with_room(settings, msgspec.structs.replace(settings, **values), values).check()


def check_value(name: str, value: object) -> Any:
    """Return the value as the setting has it; `SettingError` for an unknown setting, or another kind of value."""
    if name not in Settings.__struct_fields__:
        raise SettingError.unknown(name, value, (*Settings.__struct_fields__, TABLES))
    if name == "files" and isinstance(value, str | Path):
        value = Folder(str(value))
    try:
        converted = getattr(msgspec.convert({name: value}, Settings), name)
        return converted.check() if isinstance(converted, Folder) else converted
    except msgspec.ValidationError as error:
        raise SettingError(name, value, f"another kind of value ({error})") from None


def check_models(models: dict[str, dict[str, Any]]) -> None:
    """Refuse unknown facts about a model; their values are checked when the model is used."""
    for name, facts in models.items():
        for field, value in facts.items():
            if field not in Model.__struct_fields__:
                raise SettingError.unknown(field, value, Model.__struct_fields__, table=f"models.{name}")


def check_tables(tables: object) -> dict[str, dict[str, Any]]:
    """Return the settings of strategies by name; `SettingError` when they are not tables."""
    if not isinstance(tables, dict):
        raise SettingError(TABLES, tables, "a table of settings for each strategy")
    for name, table in tables.items():
        if not isinstance(name, str) or not isinstance(table, dict):
            raise SettingError(f"{TABLES}.{name}", table, "a table of settings, such as keep = 4")
    return tables


def _with_room(before: Settings, after: Settings, stated: dict[str, Any]) -> Settings:
    """Set the budget of the preset where nothing else says how large the window is; drop it when a model says so."""
    if after.preset is None or after.window is not None or "budget" in stated:
        return after
    assumed = find_preset(after.preset).tokens
    came_from_preset = before.preset is not None and before.budget == find_preset(before.preset).tokens
    if after.is_model_known:
        return msgspec.structs.replace(after, budget=None) if came_from_preset and not before.is_model_known else after
    return msgspec.structs.replace(after, budget=assumed) if after.budget is None or came_from_preset else after


def states_high(settings: Settings) -> bool:
    """Tell whether the user stated a high mark: in the settings, by a profile of their own, or by naming one."""
    model, named = settings.model, settings.profile
    own = named not in (None, OFF) or (named is None and model is not None and has_profile(model, settings.profiles))
    return settings.high is not None or own


COUNTING = ("condense", "sliding-window")
"""Strategies whose `keep` counts the latest messages, as that of a profile does."""


def apply_profile(settings: Settings) -> Settings:
    """Return the settings with the profile of their model: marks, messages to keep and writer.

    Stated settings win: a mark, a `keep` in the strategy, a writer. A shipped profile that nobody named sets no low
    mark: its goal is that of a summary, and other strategies would hide more than they need to.
    """
    model, named = settings.model, settings.profile
    changes: dict[str, object] = {}
    if settings.writer == BY_PROFILE:
        # A model is asked only where somebody said so, never because a profile that ships has a name for one.
        changes["writer"] = (writer_of(_profile(settings, model).writer) if model else None) or OFFLINE
    if model is not None and named != OFF:
        profile = _profile(settings, model)
        # A profile that the user wrote or named.
        own = named is not None or has_profile(model, settings.profiles)
        if settings.high is None and not _is_above(settings.low, profile.high):
            changes["high"] = profile.high
        if settings.low is None and own:
            changes["low"] = profile.low_under(settings.high if settings.high is not None else profile.high)
        # The default strategy keeps as few messages as pay, unless the user says otherwise.
        tables = {name: {"keep": profile.keep} for name in (*COUNTING, *(("economy",) if own else ()))}
        changes["strategy"] = with_tables(settings.strategy, tables)
    return msgspec.structs.replace(settings, **changes)


def _is_above(low: Size | None, high: Size) -> bool:
    """Tell whether a stated low mark leaves no room under the high mark of a profile."""
    return low is not None and all(
        tokens_of(low, each, "low") >= tokens_of(high, each, "high") for each in (SMALLEST, LARGEST)
    )


def _profile(settings: Settings, model: str) -> Profile:
    named = settings.profile
    # A smaller window that is stated for a model of the table makes no small model of it.
    window = None if settings.is_model_known else settings.window
    facts = find_known(model, window=window, overrides=settings.models)
    name = "" if named is None or named in (AUTO, OFF) else named
    return profile_for(
        model, settings.profiles, name=name, high=HIGH if settings.high is None else settings.high, facts=facts
    )


class Stage(msgspec.Struct, frozen=True):
    """One strategy, by name or dotted path, with the settings stated for it."""

    name: str
    settings: dict[str, Any] = {}


def read_stages(text: str) -> tuple[Stage, ...]:
    """Return the stages in a line such as `mask:keep=5+condense:keep=4`, whether or not they exist.

    A value that holds a comma, a plus or a list is written as JSON: `mask:exempt=["read","grep"]`.
    """
    return tuple(_stage(part) for part in _split(text, "+"))


def read_strategies(text: str) -> list[str]:
    """Return the strategies in a list such as `mask:keep=5,exempt=["read"],condense`, whether or not they exist."""
    found: list[str] = []
    for part in map(str.strip, _split(text, ",")):
        key, equals, _ = part.partition("=")
        if found and equals and ":" not in key:
            found[-1] += f",{part}"  # A further setting of the strategy before.
        elif part:
            found.append(part)
    return found


def write_stages(stages: Iterable[Stage]) -> str:
    """Return the line that `read_stages` makes these stages of."""
    pairs = [
        (stage.name, ",".join(f"{key}={_spell(each)}" for key, each in stage.settings.items())) for stage in stages
    ]
    return "+".join(f"{name}:{settings}" if settings else name for name, settings in pairs)


def with_tables(text: str, tables: dict[str, dict[str, Any]]) -> str:
    """Return the line with each stage's settings from `tables`, where the line does not state them itself."""
    stages = read_stages(text)
    if not any(tables.get(stage.name) for stage in stages):
        return text
    return write_stages(Stage(stage.name, {**tables.get(stage.name, {}), **stage.settings}) for stage in stages)


def _stage(text: str) -> Stage:
    (first, equals, value), *more = (pair.partition("=") for pair in _split(text, ","))
    if not equals:
        return Stage(text.strip())
    name, _, key = first.rpartition(":")
    settings = {key.strip(): _value(value.strip())}
    settings |= {key.strip(): _value(value.strip()) for key, _, value in more if key.strip()}
    return Stage(name.strip(), settings)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text[:1] in ('"', *_OPENING) else text
    except msgspec.DecodeError:
        return text


def _spell(value: Any) -> str:
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else msgspec.json.encode(value).decode()


def _split(text: str, separator: str) -> Iterator[str]:
    """Yield the parts between separators that stand outside of brackets and quotes."""
    start = depth = 0
    quoted = escaped = False
    for index, character in enumerate(text):
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(0, depth - 1)
        elif character == separator and depth == 0 and not (character == "+" and text[index + 1 :][:1].isdigit()):
            # A plus inside a number, such as `1e+5`, joins no stages.
            yield text[start:index]
            start = index + 1
    yield text[start:]
