"""Read and judge what a model wrote: how the answer ended, its form, its size and its language.

Nothing in an answer is trusted: what is not exactly as asked for is refused, by name. Tags inside of code fences, of
code within a line and of quoted lines are not tags: they belong to what is reported.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec

from windowsill import providers, schemas
from windowsill.errors import FormatError
from windowsill.history.entries import own_words
from windowsill.history.folds import Brief
from windowsill.messages import Reply, Unknown, Usage
from windowsill.summaries import Material
from windowsill.summaries.requests import FaultKind, UnusableError, note

LONGEST_COMPLAINT = 200
"""Characters of what the validator says: it quotes the object, which may be large."""

LONGEST_REFUSAL = 600
"""Characters: a longer text is no refusal, whatever it begins with."""

_TAG = re.compile(r"<\s*+(/?)\s*+(retain|summary)\s*+>", re.IGNORECASE)
_QUOTED = re.compile(r"^[ \t]*>.*$|`[^`\n]+`", re.MULTILINE)
_WRAPPED = re.compile(r"\s*(```+|~~~+)[^\n`]*\n(.*)\n[ \t]*\1\s*", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_FENCE_MARK = re.compile(r"[ \t]*(`{3,}|~{3,})")
_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

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

EAST_ASIAN = frozenset({"Hiragana", "Katakana", "Hangul", "Cjk"})
"""Scripts in which a syllable or an ideogram says as much as several letters."""

KANA_SHARE = 0.1
"""Japanese is ideograms with at least so many syllables between them; Chinese has none."""

ENOUGH = 12
"""Below this weight a text is too short to tell its script."""

MOST_READ = 20_000
"""Letters that are looked at for the script."""


class Answer(msgspec.Struct, frozen=True):
    """The words of an answer that ended as it should, and what they cost."""

    text: str
    usage: Usage | None = None


class Parsed(msgspec.Struct, frozen=True):
    """The text to use, what was not as it should be, and the object that the text spells, where one was asked for."""

    text: str
    notes: tuple[str, ...] = ()
    state: dict[str, Any] | None = None


def read_answer(format: str, body: bytes) -> Answer:
    """Return the words of a provider's response; `UnusableError` when it is anything else than a whole text."""
    try:
        reply = providers.get(format).read_reply(body)
    except FormatError:
        # Gemini gives no answer, but a reason, where it does not like the question.
        if b'"promptFeedback"' in body and b'"blockReason"' in body:
            raise UnusableError("refusal", "the provider blocked the request", remedy="use another model") from None
        what = "the answer is not in the provider's format"
        raise UnusableError("unreadable", what, remedy="check the address") from None
    try:
        return Answer(_words(reply), reply.usage)
    except UnusableError as fault:
        fault.usage = reply.usage
        raise


def judge(text: str, brief: Brief, material: Material, *, tags: bool) -> Parsed:
    """Return what can be used of an answer; `tags` says whether a summary has to stand between its tags."""
    if brief.style == "state":
        parsed = parse_state(text, brief.schema)
    else:
        parsed = parse_compact(text) if brief.style == "compact" else parse_summary(text, tags=tags)
    size = material.count(parsed.text)
    if size >= material.tokens:
        what = f"the answer has {size:,} tokens, what it replaces {material.tokens:,}"
        raise UnusableError("larger", what, remedy="fold more at a time")
    if brief.room and size > brief.room:
        what = f"the answer has {size:,} tokens, there is room for {brief.room:,}"
        raise UnusableError("over-room", what, remedy="give more room")
    if brief.style != "state":
        wanted = script_of(own_words(message) for message in material.messages)
        found = script_of([parsed.text])
        if wanted and found and wanted != found:
            foreign = note("", "language", f"the answer is in {found} script, the user writes {wanted}")
            return msgspec.structs.replace(parsed, notes=(*parsed.notes, foreign))
    return parsed


def without_thoughts(text: str) -> str:
    """Return the answer without the thoughts that some local models put before it.

    `UnusableError` when nothing is left, or when it reads like a refusal.
    """
    answer = _THOUGHTS.sub("", text, count=1) if _THOUGHTS.match(text) else text
    if not answer.strip():
        raise UnusableError("empty", "the model said nothing", remedy="ask again, or another model")
    if is_refusal(answer):
        raise UnusableError("refusal", "the model refused", remedy="use another model for summaries")
    return answer.strip()


def is_refusal(answer: str) -> bool:
    """Tell whether an answer is short and begins in one of the ways in which models refuse."""
    if len(answer) > LONGEST_REFUSAL:
        return False
    plain = answer.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return any(form.match(plain) for form in _REFUSALS)


def parse_summary(text: str, *, tags: bool) -> Parsed:
    """Return the one `<summary>`; with `tags` false, an answer without any is taken as it is, with a note."""
    answer = _unwrapped(without_thoughts(text))
    found, outside = _sections(answer)
    if "summary" not in found:
        if tags or found:
            raise _broken("no-summary-tag", "the answer has no <summary>")
        return Parsed(answer, (note("", "no-summary-tag", "the answer has no <summary>; all of it is used"),))
    return Parsed(_filled(found["summary"]), _outside_note(outside))


def parse_compact(text: str) -> Parsed:
    """Return the one `<retain>` and the one `<summary>`, in this order; only the latter has to be there."""
    found, outside = _sections(_unwrapped(without_thoughts(text)))
    if "summary" not in found:
        raise _broken("no-summary-tag", "the answer has no <summary>")
    body = _filled(found["summary"])
    kept = found.get("retain", "").strip()
    if kept:
        return Parsed(f"Retained:\n{kept}\n\nSummary:\n{body}", _outside_note(outside))
    return Parsed(body, (note("", "no-retain-tag", "the answer retains nothing"), *_outside_note(outside)))


def parse_state(text: str, schema: dict[str, Any] | None) -> Parsed:
    """Return the one JSON object of an answer, which fulfils the schema, if there is one."""
    source = without_thoughts(text)
    beside = ""
    found = fences(source)
    if len(found) == 1:
        [fence] = found
        source, beside = source[fence.inner : fence.close], source[: fence.start] + source[fence.end :]
    value, rest = _object(source)
    if schema is not None:
        _check_schema(value, schema)
    around = rest.strip() or beside.strip()
    notes = (note("", "outside-tags", "words beside the JSON were left out"),) if around else ()
    return Parsed(json.dumps(value, ensure_ascii=False), notes, value)


def script_of(texts: Iterable[str]) -> str:
    """Return the script of most of these texts, such as Latin, Han or Japanese; empty when there is too little to tell.

    That is enough to see that an answer is in another language.
    """
    weights: Counter[str] = Counter()
    letters = (letter for text in texts for letter in text[:MOST_READ] if letter.isalpha())
    for letter in itertools.islice(letters, MOST_READ):
        script = re.split("[ -]", unicodedata.name(letter, ""), maxsplit=1)[0].capitalize()
        # Code, paths and names are Latin in every language, so other letters weigh more.
        weights[script] += 4 if script in EAST_ASIAN else 1 if script == "Latin" else 2
    kana, han = weights.pop("Hiragana", 0) + weights.pop("Katakana", 0), weights.pop("Cjk", 0)
    weights["Japanese" if kana and kana >= KANA_SHARE * (kana + han) else "Han"] = kana + han
    best, weight = weights.most_common(1)[0]
    return best if weight >= ENOUGH else ""


class Fence(NamedTuple):
    """The start and end of a code fence; its contents stand from `inner` up to `close`."""

    start: int
    inner: int
    close: int
    end: int


def fences(text: str) -> list[Fence]:
    """Find fenced code: a line of backticks or tildes, up to the next line of just the same signs.

    One pass: whoever writes an answer must not decide how long it takes to read.
    """
    lines: list[tuple[int, int, str, bool]] = []
    last_closing: dict[str, int] = {}
    start = 0
    for number, line in enumerate(text.split("\n")):
        found = _FENCE_MARK.match(line)
        mark = found[1] if found else ""
        bare = bool(mark) and line.strip(" \t") == mark
        if bare:
            last_closing[mark] = number
        lines.append((start, start + len(line), mark, bare))
        start += len(line) + 1
    done: list[Fence] = []
    opened: tuple[int, int, str, bool] | None = None
    for number, each in enumerate(lines):
        if opened is None:
            opened = each if each[2] and last_closing.get(each[2], -1) > number else None
        elif each[3] and each[2] == opened[2]:
            done.append(Fence(opened[0], min(opened[1] + 1, each[0]), each[0], each[1]))
            opened = None
    return done


def _words(reply: Reply) -> str:
    messages = (reply.message, *reply.more)
    reason = providers.stop_kind(reply.stop_reason)
    blocks = (block for message in messages for block in message.blocks)
    if reason == "refused" or any(isinstance(block, Unknown) and block.type == "refusal" for block in blocks):
        raise UnusableError("refusal", "the model refused", remedy="use another model for summaries")
    if reason in {"length", "unfinished"}:
        raise UnusableError("truncated", "the answer was cut off", remedy="give more room, or a model that writes less")
    if any(message.calls for message in messages):
        raise UnusableError("tool-calls", "the model called tools in the place of answering", remedy="ask again")
    return "\n".join(message.text for message in messages if message.text)


def _filled(section: str) -> str:
    if not section.strip():
        raise UnusableError("empty", "the <summary> is empty", remedy="ask again, or another model")
    return section.strip()


def _outside_note(outside: str) -> tuple[str, ...]:
    return (note("", "outside-tags", "words outside of the tags were left out"),) if outside.strip() else ()


def _unwrapped(answer: str) -> str:
    """Return the answer without a fence around all of it."""
    found = _WRAPPED.fullmatch(answer)
    return answer if found is None or len(_FENCE_LINE.findall(found[2])) % 2 else found[2].strip()


def _sections(answer: str) -> tuple[dict[str, str], str]:
    """Return what stands between tags, by name, and what stands outside of all of them.

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
    """Return the answer with blanks, one for each character, where tags are only quoted."""
    pieces: list[str] = []
    end = 0
    for fence in fences(answer):
        pieces += (answer[end : fence.start], _blank(answer[fence.start : fence.end]))
        end = fence.end
    return _QUOTED.sub(lambda found: _blank(found[0]), "".join((*pieces, answer[end:])))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _object(source: str) -> tuple[dict[str, Any], str]:
    """Return the one JSON object in a text, and what stands around it."""
    start = source.find("{")
    is_list = source.lstrip().startswith("[")
    if start < 0 or is_list:
        raise _broken("not-an-object", f"the answer holds {'a list' if is_list else 'no JSON object'}")
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
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """Refuse a number beyond all bounds: it would be written as `Infinity`, which is not JSON."""
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


_decoder = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _check_schema(value: dict[str, Any], schema: dict[str, Any]) -> None:
    try:
        validator = schemas.validator(schema)
        validator.check_schema(schema)
        errors = list(validator.iter_errors(value))
    except schemas.unreadable() as error:
        what = f"the schema cannot be used: {schemas.fault_of(error)[:LONGEST_COMPLAINT]}"
        raise UnusableError("broken-schema", what, remedy="correct the schema") from None
    if errors:
        first = min(errors, key=lambda each: each.json_path)
        what = f"the object breaks its schema at {first.json_path}: {first.message[:LONGEST_COMPLAINT]}"
        raise UnusableError("schema", what, remedy="use a model that follows schemas")
