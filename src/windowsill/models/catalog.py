"""Find a model by any of its names, and learn its window from the error of a provider that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec

from windowsill.errors import SettingError, UnknownModelError
from windowsill.text import load_table

Count: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=0.25, le=4.0)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0)]
Cache: TypeAlias = Literal["explicit", "automatic", "none"]
ReasoningContent: TypeAlias = Literal["required", "kept", "refused"]
SizeClass: TypeAlias = Literal["large", "balanced", "small"]


class Ratios(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Billed tokens for each counted token at the start, by kind of content."""

    prose: Ratio = 1.0
    code: Ratio = 1.0
    json: Ratio = 1.0
    cjk: Ratio = 1.0


class PriceList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices the user states, in dollars for a million tokens; cache prices follow from `input` when left out."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class Demands(msgspec.Struct, frozen=True, omit_defaults=True):
    """The demands of a model on the messages of a request beyond those of their format."""

    bound_reasoning: bool = False
    """Signed reasoning comes only with the past it was written after."""
    no_reasoning: bool = False
    """A chat message comes without its reasoning."""
    signed_calls: bool = False
    """A call comes with a signature."""
    refused: int = 0
    """Reasoning comes only behind this entry of the history: the provider refused a signature before it."""
    no_images: bool = False
    """A message comes without pictures."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts about a model. `window`, `max_input` and `max_output` are three different limits."""

    name: str
    provider: str
    family: str
    window: Count
    """Tokens of a request and its answer together."""
    max_input: Count
    """Tokens of a request alone."""
    max_output: Count
    tokenizer: str
    """The name of a counter, or the path of a `tokenizer.json`."""
    exact: bool = False
    """True where `tokenizer` is the model's own: nothing to calibrate then."""
    ratio: Ratios = Ratios()
    framing: str
    image_rule: str
    cache: Cache
    cache_minimum: Annotated[int, msgspec.Meta(ge=0)]
    """Tokens a prefix must have to be cached."""
    cache_lifetime: Annotated[int, msgspec.Meta(ge=0)]
    """Seconds a cached prefix lives without use."""
    binds_reasoning: bool = False
    """True where signed reasoning is only accepted while everything before it is unchanged."""
    signs_calls: bool = False
    """True where a call is only accepted with the model's signature, or with a word in its place."""
    sees: bool = True
    """False where the model takes no pictures."""
    reasoning_content: ReasoningContent = "kept"
    """The treatment of unsigned reasoning beside a message of an OpenAI-like format: the model wants it back with every
    message of the assistant; takes it as it came, or ignores it; or refuses a message that has it."""
    request_bytes: Count | None = None
    media_count: Count | None = None
    media_bytes: Count | None = None
    """Bytes one picture or document may have."""
    small_sibling: str | None = None
    """A cheap model of the same provider that can write summaries."""
    size: SizeClass = "balanced"
    prices: PriceList | None = None
    """Stated by the user; otherwise prices come from the price data."""

    @property
    def demands(self) -> Demands:
        """The demands of the model on the messages of a request."""
        return Demands(
            bound_reasoning=self.binds_reasoning,
            no_reasoning=self.reasoning_content == "refused",
            signed_calls=self.signs_calls,
            no_images=not self.sees,
        )


LONG_WINDOW = "[1m]"
"""The ending by which coding agents ask for a window of a million tokens."""

_REGION = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?=[a-z])")
_VENDOR = re.compile(r"^(?:amazon|anthropic|deepseek|meta|mistral|moonshot|moonshotai|openai|qwen|xai|zai)\.(?=[a-z])")
_SERVED_VERSION = re.compile(r"-v\d+(?::\d+)?$")
_SERVED_AS = re.compile(r":(?:batch|beta|exacto|floor|free|nitro|online)$")
_DATED = re.compile(
    r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{6}|\d{4}|00\d"
    r"|latest|preview|exp|experimental|instruct|chat-hf|hf|it|maas|fp8)$"
)


def key(name: str) -> str:
    """Spell a name as names are compared: small letters, dashes for dots."""
    return name.strip().lower().replace(".", "-")


def spellings(name: str) -> Iterator[str]:
    """Yield the keys that `name` may stand under, the most literal first."""
    yield key(name)
    bare = _without_host(name.strip().lower().removesuffix(LONG_WINDOW))
    while True:
        yield key(bare)
        shorter = _DATED.sub("", bare)
        if shorter == bare:
            return
        bare = shorter


def _without_host(name: str) -> str:
    if name.startswith("ft:"):
        return name.split(":")[1]
    name = name.rpartition("/")[2]
    served = _VENDOR.sub("", _REGION.sub("", name))
    if served != name:
        return _SERVED_VERSION.sub("", served)
    return _SERVED_AS.sub("", name.partition("@")[0])


Fields: TypeAlias = dict[str, Any]

GENERIC = "generic"
"""The family of models that nobody knows: conservative ratios, no limits but the stated window."""


def families() -> dict[str, Fields]:
    """Return what each family's models share."""
    found: dict[str, Fields] = load_table("windowsill.models", "table.toml")["families"]
    return found


def models() -> dict[str, Fields]:
    """Return what each model states itself, by its name."""
    found: dict[str, Fields] = load_table("windowsill.models", "table.toml")["models"]
    return found


@cache
def table_keys() -> dict[str, str]:
    """Return the model's name for the key of every name and alias."""
    index = {key(alias): name for name, fields in models().items() for alias in fields.get("aliases", ())}
    return index | {key(name): name for name in models()}


LONG_WINDOW_TOKENS = 1_000_000

UNKNOWN_OUTPUT = 8_192
"""Answer tokens assumed for a model nobody knows: what nearly every model of the last years can write."""

_PLACE = re.compile(r"`\$\.?([^`]*)`|unknown field `([^`]*)`")


def find(
    name: str,
    *,
    window: int | None = None,
    max_output: int | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
) -> Model:
    """Find the model of this name.

    `window` and `max_output` win over the table, and a stated window makes an unknown model usable. `overrides` maps
    names to fields that win over the table.
    """
    given = _override(name, overrides or {})
    known = _known(name)
    stated: dict[str, Any] = {**given}
    if name.strip().lower().endswith(LONG_WINDOW):
        stated.setdefault("window", LONG_WINDOW_TOKENS)
    if window is not None:
        stated["window"] = window
    if max_output is not None:
        stated["max_output"] = max_output
    if known is None and "window" not in stated:
        raise _unknown(name)
    own = models()[known] if known else {}
    fields = _inherit(name, own, stated)
    fields["name"] = known or name.strip()
    return _build(name, _fit_limits(fields, own, stated))


def wants_reasoning(name: str) -> bool:
    """Tell whether a model refuses its own messages without their reasoning; false for one nobody knows."""
    return (_facts(name) or {}).get("reasoning_content") == "required"


def signs_calls(name: str) -> bool | None:
    """Tell whether a model of this name takes a call only with a signature; `None` for one nobody knows."""
    facts = _facts(name.removeprefix("models/"))
    return None if facts is None else bool(facts.get("signs_calls"))


def _facts(name: str) -> dict[str, Any] | None:
    known = _known(name)
    if known is None:
        return None
    fields = models()[known]
    return {**families()[fields["family"]], **fields}


def find_known(name: str | None, **stated: Any) -> Model | None:
    """Find the model of this name as `find` does; `None` for one that nobody knows."""
    try:
        return None if name is None else find(name, **stated)
    except UnknownModelError:
        return None


def names() -> tuple[str, ...]:
    """Return the names of all models in the table."""
    return tuple(models())


def _override(name: str, overrides: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    by_key = {key(each): fields for each, fields in overrides.items()}
    for spelling in spellings(name):
        if spelling in by_key:
            fields = by_key[spelling]
            if not isinstance(fields, Mapping):
                raise SettingError(f"models.{name}", fields, "a table of fields, such as window = 200000")
            return fields
    return {}


def _known(name: str) -> str | None:
    keys = table_keys()
    return next((keys[spelling] for spelling in spellings(name) if spelling in keys), None)


def _unknown(name: str) -> UnknownModelError:
    import difflib  # noqa: PLC0415  only needed for this error

    # Without the host in front, a near miss is nearer.
    *_, bare = spellings(name)
    close = [table_keys()[each] for each in difflib.get_close_matches(bare, table_keys(), n=3, cutoff=0.4)]
    near = f" (nearest known: {', '.join(dict.fromkeys(close))})" if close else ""
    return UnknownModelError(
        f"no window is known for the model {name!r}{near}",
        remedy=f'state one: window=200_000 to `wrap`, `fit` or `Session.open`, or [models."{name}"] window = 200000 '
        "in the settings file",
        model=name,
        nearest=tuple(dict.fromkeys(close)),
    )


def _inherit(name: str, own: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    family = stated.get("family", own.get("family", GENERIC))
    known = families()
    if family not in known:
        raise SettingError(f"models.{name}.family", family, f"one of {', '.join(sorted(known))}")
    fields = {"family": family, **known[family], **own, **stated}
    fields.pop("aliases", None)
    ratio = fields.get("ratio")
    if isinstance(ratio, int | float) and not isinstance(ratio, bool):
        fields["ratio"] = dict.fromkeys(("prose", "code", "json", "cjk"), ratio)
    elif isinstance(stated.get("ratio"), Mapping):
        fields["ratio"] = {**known[family].get("ratio", {}), **own.get("ratio", {}), **stated["ratio"]}
    return fields


def _fit_limits(fields: dict[str, Any], own: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the limits that were not stated in line with a window that was."""
    window = fields["window"]
    if not isinstance(window, int) or isinstance(window, bool):
        return fields | {"max_input": 1, "max_output": 1}  # the build below refuses the window itself
    inherited = {**families()[fields["family"]], **own}
    if "max_input" not in stated:
        most = inherited.get("max_input", window)
        # A larger window than the table's means the table is out of date, its input limit included.
        fields["max_input"] = window if window > inherited.get("window", 0) else min(most, window)
    if "max_output" not in stated:
        fields["max_output"] = min(inherited.get("max_output", min(UNKNOWN_OUTPUT, max(1, window // 4))), window)
    return fields


def _build(name: str, fields: dict[str, Any]) -> Model:
    try:
        return msgspec.convert(fields, Model)
    except msgspec.ValidationError as error:
        what = str(error)
        places = [each for match in _PLACE.finditer(what) for each in match.groups() if each]
        place = places[0] if places else ""
        value = fields.get(place.partition(".")[0]) if place else fields
        raise SettingError(f"models.{name}{'.' if place else ''}{place}", value, _allowed(what)) from error


def _allowed(what: str) -> str:
    if "unknown field" in what:
        return f"only known fields: {', '.join(Model.__struct_fields__)}"
    return what.partition(" - at")[0].removeprefix("Expected ")


LONGEST = 20_000
"""Characters of a message that are read; error messages quote whole requests at times."""

SMALLEST_WINDOW = 256
"""A smaller number in such a message is an error code, not a window."""

MOST_OVER = 20
"""A number further above the limit than this is no token count: a time, a request id."""

_NUMBER = r"(\d[\d,_]*)"
_NUMBERS = re.compile(_NUMBER)


class _Forms(NamedTuple):
    """The words of `overflow.toml`."""

    limits: tuple[re.Pattern[str], ...]
    signs: re.Pattern[str]
    other: re.Pattern[str]


@cache
def _forms() -> _Forms:
    table = load_table("windowsill.models", "overflow.toml")
    limits = (form.replace("N", _NUMBER).replace("#", r"\d[\d,_]*") for form in table["limits"])
    signs, other = (re.compile("|".join(table[name]), re.IGNORECASE) for name in ("signs", "other"))
    return _Forms(tuple(re.compile(form, re.IGNORECASE) for form in limits), signs, other)


def learn_window(message: str) -> int | None:
    """Read the limit in tokens that an overflow error names; `None` when it names none, or is another error."""
    text = message[:LONGEST]
    if _forms().other.search(text):
        return None
    for form in _forms().limits:
        match = form.search(text)
        if match:
            limit = int(match[1].replace(",", "").replace("_", ""))
            return limit if limit >= SMALLEST_WINDOW else None
    return None


def learn_count(message: str) -> int | None:
    """Read the tokens the provider counted in the refused request: the next number above the limit, if any."""
    window = learn_window(message)
    if window is None:
        return None
    numbers = (int(found.replace(",", "").replace("_", "")) for found in _NUMBERS.findall(message[:LONGEST]))
    return min((number for number in numbers if window < number <= window * MOST_OVER), default=None)


def is_overflow(message: str) -> bool:
    """Tell whether an error says that the request did not fit the model's window, or is too large to be sent."""
    text = message[:LONGEST]
    forms = _forms()
    return learn_window(text) is not None or (forms.signs.search(text) is not None and forms.other.search(text) is None)
