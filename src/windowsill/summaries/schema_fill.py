"""Fill a JSON object by its schema from what was said, as far as code can: nothing is guessed, nothing invented.

A value comes from a call's argument of the same name, from "name: value" and the like, from an enum's words, or from a
date, number or address near the property's name. What was said last counts; what cannot be found stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windowsill import schemas
from windowsill.dates import last_date
from windowsill.history.entries import own_words
from windowsill.messages import Message

NEAR = 60
"""Characters around a property's name in which its value is looked for."""

LONGEST_VALUE = 300
LONGEST_ARGUMENT = 4_000
"""Characters of a call's argument that is kept as a value."""

MOST_MEMBERS = 200
"""Entries of one list or object that is kept as a value."""

LONGEST_NUMBER = 15
"""Digits: a longer one is an id, and would not survive as a number everywhere."""

DEEPEST = 8
"""Levels of nested objects that are filled."""

MOST_WORDS = 20_000
"""Characters of one message that are looked at."""

_SPLIT = re.compile(r"[_\-\s]+|(?<=[a-z0-9])(?=[A-Z])")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]++(?:\.[\w-]++)++")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_ADDRESS = re.compile(r"https?://[^\s\"'<>)\]]+")
_YES = frozenset({"yes", "true", "on", "はい", "有", "あり"})
_NO = frozenset({"no", "false", "off", "いいえ", "無", "なし"})

State = dict[str, Any]
Schema = Mapping[str, Any]


def fill(schema: Schema, messages: Sequence[Message], before: State) -> State:
    """Return the object after these messages: earlier values stay unless something newer was said."""
    found = dict(before)
    for message in messages:
        if message.origin:
            continue
        words = own_words(message)[:MOST_WORDS]
        for source in (call.input for call in message.calls):
            found = _from_object(schema, source, found, DEEPEST)
        if words:
            found = _from_words(schema, words, found, DEEPEST)
    return _ordered(schema, found)


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, rule in properties.items():
            if isinstance(name, str):
                yield name, rule if isinstance(rule, Mapping) else {}


def _ordered(schema: Schema, found: State) -> State:
    """Put values in the order of the schema, so that the same ones give the same bytes; unknown ones come last."""
    known = [name for name, _ in _properties(schema) if name in found]
    return {name: found[name] for name in (*known, *(name for name in found if name not in known))}


def _from_object(schema: Schema, source: Mapping[str, Any], found: State, depth: int) -> State:
    """Take the arguments of a call that have a property's name and its shape."""
    for name, rule in _properties(schema):
        inner = source.get(name)
        if isinstance(inner, Mapping) and "properties" in rule and depth:
            if inside := _from_object(rule, inner, _object(found.get(name)), depth - 1):
                found = {**found, name: inside}
        elif name in source and _storable(inner, DEEPEST) and fits(rule, inner):
            found = {**found, name: inner}
    return found


def _object(value: Any) -> State:
    return dict(value) if isinstance(value, Mapping) else {}


def _storable(value: Any, depth: int) -> bool:
    """Tell whether a state can keep a value: not too deep, no endless text, no number that the journal cannot hold."""
    match value:
        case str():
            return len(value) <= LONGEST_ARGUMENT
        case int():
            return -(2**63) <= value < 2**63
        case dict():
            return _storable(list(value.values()), depth)
        case list():
            return depth > 0 and len(value) <= MOST_MEMBERS and all(_storable(each, depth - 1) for each in value)
        case _:
            return True


def _from_words(schema: Schema, words: str, found: State, depth: int) -> State:
    for name, rule in _properties(schema):
        if "properties" not in rule:
            value = _value_in(name, rule, words)
        else:
            value = (_from_words(rule, words, _object(found.get(name)), depth - 1) or None) if depth else None
        if value is not None:
            found = {**found, name: value}
    return found


def _value_in(name: str, rule: Schema, words: str) -> Any:
    """Return the last value the words give for a property; `None` when they give none."""
    several = _types(rule) == {"array"}
    items = rule.get("items")
    one = items if several and isinstance(items, Mapping) else rule
    for raw in reversed(list(_given(name, rule, words))):
        if several:
            listed = [value for part in re.split(r"[,、;]|\band\b", raw) if (value := shaped(one, part)) is not None]
            if listed and fits(rule, listed):
                return listed
        elif (value := shaped(one, raw)) is not None and fits(rule, value):
            return value
    if not several and (value := _by_kind(name, rule, words)) is not None and fits(rule, value):
        return value
    return None


def _given(name: str, rule: Schema, words: str) -> Iterator[str]:
    """Yield what stands after a property's name as its value: `name: value`, `name is value`, `nameはvalue`."""
    for label in _labels(name, rule):
        pattern = rf"(?<!\w){label}(?!\w)\s*(?:[:=\uff1a]|\bis\b|\bare\b|->|は|が)\s*([^\n]+)"
        if not label.isascii():
            pattern = rf"{label}\s*(?:[:=\uff1a]|は|が)\s*([^\n]+)"
        for match in re.finditer(pattern, words, re.IGNORECASE):
            yield re.split(r"[.!?](?:\s|$)|[。\uff01\uff1f;\uff1b]", match[1], maxsplit=1)[0][:LONGEST_VALUE].strip()


def _labels(name: str, rule: Schema) -> list[str]:
    """Return the ways to write a property's name, as expressions."""
    parts = [re.escape(part) for part in _SPLIT.split(name) if part]
    title = rule.get("title")
    titled = [re.escape(title)] if isinstance(title, str) and title.strip() else []
    return [r"[\s_-]*".join(parts) if parts else re.escape(name), *titled]


def _by_kind(name: str, rule: Schema, words: str) -> Any:
    """Return a value known by its look: an enum's word, an address, a date or number near the property's name."""
    if choices := [choice for choice in _enum(rule) if isinstance(choice, str) and choice]:
        places = [(_last(choice, words), choice) for choice in choices]
        place, choice = max(places, key=lambda pair: (pair[0], len(pair[1])))
        return choice if place >= 0 else None
    form = rule.get("format")
    if form == "email":
        return (_EMAIL.findall(words) or [None])[-1]
    if form in ("uri", "url"):
        return (_ADDRESS.findall(words) or [None])[-1]
    near = [match for label in _labels(name, rule) for match in re.finditer(label, words, re.IGNORECASE)]
    for match in reversed(near):
        around = words[max(0, match.start() - NEAR) : match.end() + NEAR]
        if form in ("date", "date-time"):
            value: Any = last_date(around)
        elif _types(rule) & {"number", "integer"}:
            after = _NUMBER.search(words[match.end() : match.end() + NEAR])
            before = _NUMBER.findall(words[max(0, match.start() - NEAR) : match.start()])
            value = shaped(rule, after[0] if after else before[-1] if before else "")
        else:
            value = None
        if value is not None:
            return value
    # An answer that is a date and little else answers the question for one.
    return last_date(words) if form == "date" and not near and len(words) <= NEAR else None


def _last(choice: str, words: str) -> int:
    edge = r"(?<!\w){}(?!\w)" if choice.isascii() else "{}"
    found = [match.start() for match in re.finditer(edge.format(re.escape(choice)), words, re.IGNORECASE)]
    return found[-1] if found else -1


def shaped(rule: Schema, raw: str) -> Any:
    """Return a raw text as a value of the rule's type; `None` when it has not that shape."""
    raw = raw.strip().strip("\"'`“”「」*").strip()
    types = _types(rule)
    if choices := _enum(rule):
        return next((choice for choice in choices if str(choice).lower() == raw.lower()), None)
    if types & {"number", "integer"}:
        match = _NUMBER.search(raw)
        digits = match[0].replace(",", "") if match else ""
        if not digits or len(digits) > LONGEST_NUMBER:
            return None
        return int(digits) if "." not in digits else float(digits) if "number" in types else None
    if "boolean" in types:
        first = re.split(r"[\s,.、。]", raw.lower(), maxsplit=1)[0]
        return True if first in _YES else False if first in _NO else None
    if types and "string" not in types:
        return None
    form = rule.get("format")
    if form == "date":
        return last_date(raw)
    if form == "email":
        return (_EMAIL.findall(raw) or [None])[-1]
    return raw or None


def fits(rule: Schema, value: Any) -> bool:
    """Tell whether a value fulfils a rule; a rule that cannot be read demands nothing."""
    broken: tuple[type[BaseException], ...] = (TypeError, AttributeError, ValueError, *schemas.unreadable())
    try:
        return bool(schemas.validator(dict(rule)).is_valid(value))
    except re.error:
        # A pattern of another dialect says nothing here; the rest of its rule counts.
        return "pattern" not in rule or fits({key: rule[key] for key in rule if key != "pattern"}, value)
    except broken:
        return True


def _types(rule: Schema) -> set[str]:
    named = rule.get("type")
    every = named if isinstance(named, list) else [named]
    return {type for type in every if isinstance(type, str)}


def _enum(rule: Schema) -> list[Any]:
    choices = rule.get("enum")
    return choices if isinstance(choices, list) else [rule["const"]] if "const" in rule else []
