"""Reads what a model wrote. Nothing in it is trusted: what is not exactly as asked for is refused, by name.

Tags inside of code fences, of code within a line and of quoted lines are not tags: they belong to what is reported.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import msgspec

from windowsill import providers, schemas
from windowsill.errors import FormatError
from windowsill.history.folds import Brief
from windowsill.history.marker import own_words
from windowsill.messages import Message, Reply, Unknown, Usage
from windowsill.summaries import Material
from windowsill.summaries.errors import FaultKind, UnusableError, note
from windowsill.summaries.text import fences, script_of

SHORT = 600
"""Characters: a longer text is no refusal, whatever it begins with."""

_CANNOT = r"(?:can't|cannot|can not|won't|will not|am unable to|am not able to|must decline|have to decline|decline)"
_DOING = r"(?:help|assist|do|comply|fulfil|summar|provide|continue|process|create|write|share|discuss|with|that|this)"

_REFUSALS = tuple(
    re.compile(rf"\W*{form}", re.IGNORECASE)
    for form in (
        rf"(?:i'm |i am |we're |we are )?(?:so |very |really )?(?:sorry|afraid)\b.{{0,20}}\b(?:i|we) {_CANNOT}\b",
        rf"(?:i|we) {_CANNOT} (?:to )?{_DOING}",
        rf"as an ai\b.{{0,60}}\bi {_CANNOT}\b",
        r"申し訳.{0,60}(?:できません|できかねます|いたしかねます|お断り)",
        r"[^。\n]{0,30}(?:要約|お手伝い|お応え|対応|お答え)[^。\n]{0,10}(?:できません|できかねます)",
        r"(?:很?抱歉|对不起).{0,30}(?:无法|不能|不会)",
        r"죄송.{0,60}(?:없습니다|어렵습니다)",
    )
)


def is_refusal(answer: str) -> bool:
    """Whether an answer reads like a refusal."""
    if len(answer) > SHORT:
        return False
    plain = answer.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return any(form.match(plain) for form in _REFUSALS)


_TAG = re.compile(r"<\s*+(/?)\s*+(retain|summary)\s*+>", re.IGNORECASE)
_QUOTED = re.compile(r"^[ \t]*>.*$|`[^`\n]+`", re.MULTILINE)
_WRAPPED = re.compile(r"\s*(```+|~~~+)[^\n`]*\n(.*)\n[ \t]*\1\s*", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


class Parsed(msgspec.Struct, frozen=True):
    """The text to use, and what was not as it should be."""

    text: str
    notes: tuple[str, ...] = ()


def spoken(text: str) -> str:
    """The answer without the thoughts that some local models put before it; refused when nothing is left.

    `UnusableError` also when it reads like a refusal.
    """
    answer = _THOUGHTS.sub("", text, count=1) if _THOUGHTS.match(text) else text
    if not answer.strip():
        raise UnusableError("empty", "the model said nothing", remedy="ask again, or another model")
    if is_refusal(answer):
        raise UnusableError("refusal", "the model refused", remedy="use another model for summaries")
    return answer.strip()


def summary(text: str, *, tags: bool) -> Parsed:
    """The one `<summary>`; with `tags` false, an answer without any is taken as it is, and that is told."""
    answer = _unwrapped(spoken(text))
    found, outside = _sections(answer)
    if "summary" not in found:
        if tags or found:
            raise _missing()
        return Parsed(answer, (note("", "no-summary-tag", "the answer has no <summary>; all of it is used"),))
    return Parsed(_filled(found["summary"]), _beside(outside))


def compact(text: str) -> Parsed:
    """The one `<retain>` and the one `<summary>`, what is to be retained first; only the latter has to be there."""
    found, outside = _sections(_unwrapped(spoken(text)))
    if "summary" not in found:
        raise _missing()
    body = _filled(found["summary"])
    kept = found.get("retain", "").strip()
    if kept:
        return Parsed(f"Retained:\n{kept}\n\nSummary:\n{body}", _beside(outside))
    return Parsed(body, (note("", "no-retain-tag", "the answer retains nothing"), *_beside(outside)))


def _missing() -> UnusableError:
    return _broken("no-summary-tag", "the answer has no <summary>")


def _filled(section: str) -> str:
    if not section.strip():
        raise UnusableError("empty", "the <summary> is empty", remedy="ask again, or another model")
    return section.strip()


def _beside(outside: str) -> tuple[str, ...]:
    return (note("", "outside-tags", "words outside of the tags were left out"),) if outside.strip() else ()


def _unwrapped(answer: str) -> str:
    """The answer without a fence around all of it."""
    found = _WRAPPED.fullmatch(answer)
    return answer if found is None or len(_FENCE_LINE.findall(found[2])) % 2 else found[2].strip()


def _sections(answer: str) -> tuple[dict[str, str], str]:
    """What stands between tags, by name, and what stands outside of all of them.

    `UnusableError` where they do not stand one after the other, each once.
    """
    found: dict[str, str] = {}
    outside, end = "", 0
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(_masked(answer)):
        name, closes = tag[2].lower(), bool(tag[1])
        if closes:
            if opened is None or opened[2].lower() != name:
                raise _broken("tag-unclosed", f"</{name}> closes nothing")
            found[name] = answer[opened.end() : tag.start()]
            outside += answer[end : opened.start()]
            opened, end = None, tag.end()
        elif opened is not None:
            raise _broken("tag-nested", f"<{name}> inside of <{opened[2].lower()}>")
        elif name in found:
            raise _broken("tag-twice", f"<{name}> stands there twice")
        else:
            opened = tag
    if opened is not None:
        raise _broken("tag-unclosed", f"<{opened[2].lower()}> is not closed")
    return found, outside + answer[end:]


def _broken(kind: FaultKind, what: str) -> UnusableError:
    return UnusableError(kind, what, remedy="use a model that follows forms")


def _masked(answer: str) -> str:
    """The answer with blanks, one for each character, where tags are only quoted."""
    pieces: list[str] = []
    end = 0
    for fence in fences(answer):
        pieces += (answer[end : fence.start], _blank(answer[fence.start : fence.end]))
        end = fence.end
    return _QUOTED.sub(lambda found: _blank(found[0]), "".join((*pieces, answer[end:])))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


LONGEST_COMPLAINT = 200
"""Characters of what the validator says: it quotes the object, which may be large."""


def state(text: str, schema: dict[str, Any] | None) -> tuple[dict[str, Any], Parsed]:
    """The one JSON object of an answer: itself, and its text. It fulfils the schema, if there is one."""
    answer = spoken(text)
    found = fences(answer)
    source, beside = answer, ""
    if len(found) == 1:
        [fence] = found
        source, beside = answer[fence.inner : fence.close], answer[: fence.start] + answer[fence.end :]
    value, rest = _object(source)
    around = rest.strip() or beside.strip()
    if schema is not None:
        _fulfil(value, schema)
    notes = (note("", "outside-tags", "words beside the JSON were left out"),) if around else ()
    return value, Parsed(json.dumps(value, ensure_ascii=False), notes)


def _object(source: str) -> tuple[dict[str, Any], str]:
    start = source.find("{")
    if start < 0:
        what = "a list" if source.lstrip().startswith("[") else "no JSON object"
        raise UnusableError("not-an-object", f"the answer holds {what}", remedy="use a model that follows forms")
    if source.lstrip().startswith("["):
        raise UnusableError("not-an-object", "the answer holds a list", remedy="use a model that follows forms")
    try:
        value, length = _decoder.raw_decode(source[start:])
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise UnusableError("not-json", f"the answer is not JSON: {why}", remedy="ask again") from None
    rest = source[start + length :]
    if "{" in rest and _is_object(rest[rest.index("{") :]):
        raise UnusableError("json-twice", "the answer holds two JSON objects", remedy="ask again")
    return value, source[:start] + rest


def _is_object(source: str) -> bool:
    try:
        _decoder.raw_decode(source)
    except (ValueError, RecursionError):
        return False
    return True


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    """A number with a point or an exponent; one beyond all bounds would be written as `Infinity`, which is no JSON."""
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


_decoder = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _fulfil(value: dict[str, Any], schema: dict[str, Any]) -> None:
    try:
        validator = schemas.validator(schema)
        validator.check_schema(schema)
        errors = list(validator.iter_errors(value))
    except schemas.unreadable() as error:
        said = schemas.fault_of(error)[:LONGEST_COMPLAINT]
        raise UnusableError(
            "broken-schema", f"the schema cannot be used: {said}", remedy="correct the schema"
        ) from None
    if errors:
        first = min(errors, key=lambda each: each.json_path)
        raise UnusableError(
            "schema",
            f"the object breaks its schema at {first.json_path}: {first.message[:LONGEST_COMPLAINT]}",
            remedy="use a model that follows schemas",
        )


class Judged(msgspec.Struct, frozen=True):
    """A text that can be used; `state` is the object it spells, where one was asked for."""

    text: str
    notes: tuple[str, ...] = ()
    state: dict[str, Any] | None = None


class Said(msgspec.Struct, frozen=True):
    """The words of an answer that ended as it should, and what they cost."""

    text: str
    usage: Usage | None = None


def said(format: str, body: bytes) -> Said:
    """The words of a provider's response; `UnusableError` when it is anything else than a whole text."""
    try:
        reply = providers.get(format).read_reply(body)
    except FormatError:
        if _blocked(body):
            raise UnusableError("refusal", "the provider blocked the request", remedy="use another model") from None
        what = "the answer is not in the provider's format"
        raise UnusableError("unreadable", what, remedy="check the address") from None
    try:
        return Said(_words(reply), reply.usage)
    except UnusableError as fault:
        fault.usage = reply.usage
        raise


def _words(reply: Reply) -> str:
    messages = (reply.message, *reply.more)
    reason = providers.stop_kind(reply.stop_reason)
    if reason == "refused" or any(_declines(message) for message in messages):
        raise UnusableError("refusal", "the model refused", remedy="use another model for summaries")
    if reason in {"length", "unfinished"}:
        raise UnusableError("truncated", "the answer was cut off", remedy="give more room, or a model that writes less")
    if any(message.calls for message in messages):
        raise UnusableError("tool-calls", "the model called tools in the place of answering", remedy="ask again")
    return "\n".join(message.text for message in messages if message.text)


def _declines(message: Message) -> bool:
    return any(isinstance(block, Unknown) and block.type == "refusal" for block in message.blocks)


def _blocked(body: bytes) -> bool:
    """Whether Gemini gave no answer because of the question."""
    try:
        return bool((msgspec.json.decode(body, type=_Blocked).promptFeedback or {}).get("blockReason"))
    except (msgspec.DecodeError, RecursionError):
        return False


class _Blocked(msgspec.Struct):
    promptFeedback: dict[str, Any] | None = None  # noqa: N815 Google's spelling


def judge(text: str, brief: Brief, material: Material, *, tags: bool) -> Judged:
    """What can be used of an answer; `tags` says whether a summary has to stand between its tags."""
    value: dict[str, Any] | None = None
    if brief.style == "state":
        value, parsed = state(text, brief.schema)
    else:
        parsed = compact(text) if brief.style == "compact" else summary(text, tags=tags)
    _demand_size(parsed, brief, material)
    return Judged(parsed.text, (*parsed.notes, *_language(parsed, brief, material)), value)


def _demand_size(parsed: Parsed, brief: Brief, material: Material) -> None:
    size = material.count(parsed.text)
    if size >= material.tokens:
        what = f"the answer has {size:,} tokens, what it replaces {material.tokens:,}"
        raise UnusableError("larger", what, remedy="fold more at a time")
    if brief.room and size > brief.room:
        what = f"the answer has {size:,} tokens, there is room for {brief.room:,}"
        raise UnusableError("over-room", what, remedy="give more room")


def _language(parsed: Parsed, brief: Brief, material: Material) -> tuple[str, ...]:
    if brief.style == "state":
        return ()
    wanted = script_of(own_words(message) for message in material.messages)
    found = script_of([parsed.text])
    if not wanted or not found or wanted == found:
        return ()
    return (note("", "language", f"the answer is in {found} script, the user writes {wanted}"),)
