"""Finding a model by any of its names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.errors import SettingError, UnknownModelError
from windowsill.models import table
from windowsill.models.model import Model
from windowsill.models.names import LONG_WINDOW, key, spellings

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
    """The model with this name.

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
    own = table.models()[known] if known else {}
    fields = _inherit(name, own, stated)
    fields["name"] = known or name.strip()
    return _build(name, _fit_limits(fields, own, stated))


def wants_reasoning(name: str) -> bool:
    """Whether a model of this name refuses its own messages without their reasoning; false for one nobody knows."""
    return (_facts(name) or {}).get("reasoning_content") == "required"


def signs_calls(name: str) -> bool | None:
    """Whether a model of this name takes a call only with a signature; `None` for one nobody knows."""
    facts = _facts(name.removeprefix("models/"))
    return None if facts is None else bool(facts.get("signs_calls"))


def _facts(name: str) -> dict[str, Any] | None:
    known = _known(name)
    if known is None:
        return None
    fields = table.models()[known]
    return {**table.families()[fields["family"]], **fields}


def names() -> tuple[str, ...]:
    """The names of all models in the table."""
    return tuple(table.models())


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
    keys = table.keys()
    return next((keys[spelling] for spelling in spellings(name) if spelling in keys), None)


def _unknown(name: str) -> UnknownModelError:
    import difflib  # noqa: PLC0415  only needed for this error

    # Without the host in front, a near miss is nearer.
    *_, bare = spellings(name)
    close = [table.keys()[each] for each in difflib.get_close_matches(bare, table.keys(), n=3, cutoff=0.4)]
    near = f" (nearest known: {', '.join(dict.fromkeys(close))})" if close else ""
    return UnknownModelError(
        f"no window is known for the model {name!r}{near}",
        remedy=f'state one: window=200_000 in the call, or [models."{name}"] window = 200000 in the settings file',
        model=name,
        nearest=tuple(dict.fromkeys(close)),
    )


def _inherit(name: str, own: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    family = stated.get("family", own.get("family", table.GENERIC))
    known = table.families()
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
    inherited = {**table.families()[fields["family"]], **own}
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
