"""Reads what a model wrote. Nothing in it is trusted: what is not exactly as asked for is refused, by name.

Tags inside of code fences, of code within a line and of quoted lines are not tags: they belong to what is reported.
"""

from __future__ import annotations

import re

import msgspec

from windowsill.writers.errors import FaultKind, UnusableError, note
from windowsill.writers.fences import fences
from windowsill.writers.refusals import is_refusal

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
