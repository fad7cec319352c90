"""How a call ended, told from the text it gave back: exit codes, tracebacks, error lines."""

from __future__ import annotations

import re

import msgspec

from windowsill.messages import Document, Text, ToolResult

EDGE = 3_000
"""Characters looked at from each end of an output: programs say first or last that they failed."""

LONGEST_LINE = 240
"""Characters of the line that is kept of an output."""

LAST_LINES = 12
"""Lines at the end of an output among which the most telling one is looked for."""

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code|exit[_-]?(?:code|status))\W{0,3}[^\w-](-?\d{1,10})\b"
    r"|終了(?:コード|ステータス)[^\d\n-]{0,3}(-?\d{1,10})"
)
_ENDING = ("exit", "return", "終了")
_SUSPICIOUS = (
    "error", "err!", "exception", "fatal", "panic", "fail", "traceback", "not found", "no such file",
    "permission denied", "エラー", "失敗", "例外",
)  # fmt: skip
_SUSPECT = re.compile("|".join(_SUSPICIOUS))
_FAILURE = re.compile(
    r"""\W{0,4}(?:\[[^\]]{1,40}\]\s*)?\W{0,4}(?:
        [\w.]{0,80}(?:error|exception|fatal|panic|failure)(?:\s*[:\[(!]|$) | error\s
        | traceback\ \(most\ recent | fail(?:ed)?\b | (?:npm\ )?err! | error\ ts\d
        | [1-9]\d*\ (?:tests?\ )?failed\b | test\ result:\ failed | make(?:\[\d+\])?:\ \*\*\*\ .{0,120}\berror\ \d
        | .{0,120}(?:command\ not\ found | no\ such\ file\ or\ directory | permission\ denied)
        | [^\s:]{1,200}:\d+(?::\d+)?:\s+(?:fatal\ )?error\b
        | エラー | 失敗 | 例外
    )""",
    re.VERBOSE,
)
_TELLING = re.compile(
    r"\b\d+ (?:passed|failed|errors?|tests?)\b|\bok\b|\bdone\b|success|created|\[[^\]\n]+ [0-9a-f]{7,40}\]"
)
_RAISED = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_REFUSED = re.compile(
    r"<tool_use_error>|doesn't want to proceed|was rejected|\"?(?:is_?error|error)\"?\s*[:=]\s*(?:true|\")",
    re.IGNORECASE,
)


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended."""

    failed: bool
    exit: int | None = None
    said: str = ""
    """The line that tells it."""


def output(result: ToolResult) -> str:
    """The words of a result."""
    parts = [block.text for block in result.content if isinstance(block, Text | Document) and block.text]
    return parts[0] if len(parts) == 1 else "\n".join(parts)


def outcome(text: str, *, is_error: bool, shows_files: bool) -> Outcome:
    """What a result says of how it went. Words in the contents of a file are not taken for an error."""
    if shows_files and not is_error:
        return Outcome(failed=False, said=_first_line(text[:EDGE]))
    edges = text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"
    lowered = edges.lower()
    code = _EXIT.search(lowered) if any(word in lowered for word in _ENDING) else None
    exit = int(code[1] or code[2]) if code else None
    line = _failure(edges, lowered)
    if is_error or exit or (line and exit is None):
        return Outcome(failed=True, exit=exit, said=line or _first_line(edges))
    return Outcome(failed=False, exit=exit, said=_last_line(edges[-EDGE:]))


def refused(text: str) -> bool:
    """Whether a short answer of a tool reads like a refusal to do it."""
    return len(text) < EDGE and _REFUSED.search(text[:400]) is not None


def _failure(text: str, lowered: str) -> str:
    """The first line that reports a failure; of a traceback, the error it ends with."""
    if not any(word in lowered for word in _SUSPICIOUS):
        return ""
    if len(text) != len(lowered):  # a few letters grow when lowered: places would no longer agree
        text = lowered
    searched = 0
    for suspect in _SUSPECT.finditer(lowered):
        if suspect.start() < searched:
            continue
        start = lowered.rfind("\n", 0, suspect.start()) + 1
        stop = lowered.find("\n", suspect.start())
        searched = stop if stop >= 0 else len(lowered)
        if _FAILURE.match(lowered[start : min(searched, start + 4 * LONGEST_LINE)]):
            if lowered.startswith("traceback", start):
                rest = [line.strip() for line in text[start:].splitlines()[1:]]
                return next((line for line in rest if _RAISED.match(line)), rest[-1] if rest else "")[:LONGEST_LINE]
            return text[start:searched].strip()[:LONGEST_LINE]
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:LONGEST_LINE]


def _last_line(text: str) -> str:
    """The last line that tells a result, or simply the last one."""
    lines = text.rstrip().splitlines()[-LAST_LINES:]
    told = next(
        (line for line in reversed(lines) if _TELLING.search(line[: 4 * LONGEST_LINE])), lines[-1] if lines else ""
    )
    return told.strip()[:LONGEST_LINE]
