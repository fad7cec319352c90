"""Finds what is assigned to a name that says it is secret: in shell, env files, JSON, YAML, XML, code, flags.

A name alone says little (`token = next(tokens)`), so the value decides too. Where it is quoted, or an upper-case name
gets it as in a shell, nearly every value counts; where it could as well be code or prose, it must hold a digit or a
sign that words do not have. References to a secret (`$TOKEN`, `<token>`, `os.environ[...]`) are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from windowsill.secrets.base import Secret, compiled
from windowsill.secrets.entropy import is_known, wordiness

KINDS = ("password", "secret", "token", "api-key")

HINTS = ("pass", "pwd", "secret", "token", "key", "credential")

SHORTEST = 4
"""Characters below which nothing is worth to be called a secret."""

SHORTEST_PLAIN = 6
"""The same where quotes do not say that it is a value."""

SHORTEST_DOUBTFUL = 8
"""The same where the name may be that of something else: a `token` of a text, a `secret` of a story."""

WORDY = 0.6
"""Share of common pairs from which a value under a doubtful name is a word or a name."""

NAMED = 0.5
"""Share of common pairs from which a value with such a word in it is a name and not a secret."""

LONGEST_NAME = 64
"""Characters of a name that are looked at."""

_NAME = (
    r"(?:(pass(?:word|wd|phrase|code)|pwd)|((?:api|access|auth|private|secret|encryption|signing|account|master|session"
    r"|subscription|service|app|license)[_-]?key(?:[_-]?base|[_-]?data)?|client[_-]?key[_-]?data|client[_-]?secret"
    r"|(?:access|auth|refresh|bearer|bot|api)[_-]?token)|(secret|token|credentials?|pass))"
    r"(?:[_-](?:prod|dev|test|staging|live|old|new|[0-9]{1,2}))?"
)
_SET = (
    r"""((?:\\?["'`])?[ \t]*(?:=>|:=|[:=])[ \t]*(?:\[\s{0,16})?|\\?["']\s*:\s*(?:\[\s*)?"""
    r"""|\\?["']\s*,\s*\\?["']value\\?["']\s*:\s*|[ \t]*\r?\n[ \t]*value:[ \t]*|>|[ \t]{1,8}(?:is:?[ \t]{1,8})?)"""
)
"""On one line; in JSON over several; as a pair of `name` and `value`, also in YAML; as a tag of XML; in words."""
_VALUE = (
    r"""(?:[bru]{0,2}(?:\\"([^"\\\r\n]*)\\"|"((?:[^"\\\r\n]|\\.)*)"|'((?:[^'\\\r\n]|\\.)*)')"""
    r"""|([^\s"'`\\]+))"""
)
_ASSIGNED = rf"(?i){_NAME}{_SET}{_VALUE}"

_BEFORE = re.compile(rb"[A-Za-z0-9_.-]*$")
_OTHERS = re.compile(r"(?i)(?:next|page|continuation|stop|pad|eos|bos|unk|sep|cls|mask|special|csrf|per|max|min)[_-]?$")
"""What stands before `token` where it is a piece of text, or the place where a list goes on."""

_REFERS = re.compile(
    r"""(?ix)
    \$ | %\w+%$ | \{\{ | \{[\w.\s-]*\}$ | <.*>$ | \[.*\]$ | \[secret: | !\w | [:*]+$ | \.{2,}$ | &\w | x{4,}$
    | [a-z][a-z0-9+.-]*://
    | (?:process|os|env|environ|config|settings|self|this|args|options|ctx|secrets|vars|params|request|req)(?:\.|\[|$)
    | (?:your|my|the|some|an?|insert|enter|put|change|replace|example|dummy|fake|placeholder|redacted|hidden)[-_\ ]
    | (?:null|none|nil|true|false|undefined|required|optional|string|str|int|bool|bytes|any|object|text|redacted|todo
        |example|placeholder|changeme|n/a)[;,)]*$
    """
)
"""Stand-ins for a secret, and names of where it comes from."""

_NAMED = re.compile(r"(?i)key|token|secret|passw|credential")
"""A word that stands in the name of a secret, or in an example of one, but in none that was drawn."""

_SPELLED = str.maketrans({"\\": "/", '"': "'", "\n": " ", "\r": " "})
"""Stands for what cannot stand between quotes as it is; only the form of a value matters here."""

_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$|[A-Za-z_][\w.]*[(\[]")
_ENDS = {"code": re.compile(r"[,;()}\]{\[]"), "query": re.compile(r"[&;#,]"), "line": re.compile(r"[,;)}\]]+$")}
"""Where a value without quotes ends before the next blank: in a call, in an address, on a line of its own."""

_SIGNS = re.compile(r"[!#$%^&*+/=?~@:-]")
_ESCAPE = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class _Said(msgspec.Struct):
    """An assignment as it stands in a text."""

    sure: bool
    """The name is that of a password or a key, and of nothing else."""
    phrase: bool
    """The name is that of a password: it may be several words."""
    shell: bool
    """An upper-case name that gets its value as in a shell, without blanks around."""
    quoted: bool
    ends: str
    """How a value without quotes ends."""
    value: str


def find(data: bytes) -> Iterator[Secret]:
    """The values of secret names."""
    for match in compiled(_ASSIGNED).finditer(data):
        group = next(number for number in (1, 2, 3) if match.span(number)[0] >= 0)
        value = next(number for number in (5, 6, 7, 8) if match.span(number)[0] >= 0)
        name, set_by, (start, end) = match.span(group), data[slice(*match.span(4))], match.span(value)
        before = _BEFORE.search(data[max(0, name[0] - LONGEST_NAME) : name[0]])
        prefix = _unescaped(data, name[0], before[0].decode() if before else "")
        word = data[slice(*name)].decode()
        if not _is_name(prefix, word, group) or not _is_set(prefix, set_by):
            continue
        text = data[start:end].decode("utf-8", "surrogateescape")
        if set_by == TAG:
            if data[name[0] - len(prefix) - 1 : name[0] - len(prefix)] != b"<" or "</" not in text:
                continue
            text, value = text.partition("</")[0], QUOTED  # tags say as clearly as quotes where it ends
        shell = set_by == b"=" and (prefix + word).isupper()
        in_query = data[name[0] - len(prefix) - 1 : name[0] - len(prefix)] in QUERY
        ends = "query" if in_query else "code" if b"=" in set_by and not shell else "line"
        said = _Said(group != DOUBTFUL, group == PHRASE, shell, quoted=value != UNQUOTED, ends=ends, value=text)
        if size := _secret(said):
            kind = "password" if group == PHRASE else "api-key" if group == KEY else _kind(word)
            yield Secret(kind, start, start + len(text[:size].encode("utf-8", "surrogateescape")))


PHRASE, KEY, DOUBTFUL, QUOTED, UNQUOTED = 1, 2, 3, 6, 8
"""Groups of the pattern."""

TAG = b">"
"""What stands between a tag and its value."""

QUERY = (b"?", b"&")
"""What stands before a name in the query of an address."""


def kind_under(name: str, value: str) -> str:
    """The kind of secret that a value of a document is because of its name; empty when it is none."""
    spelled = f'"{name}": "'.encode("utf-8", "surrogatepass")
    plain = value.translate(_SPELLED).encode("utf-8", "surrogatepass")
    return next((each.kind for each in find(spelled + plain + b'"') if each.start == len(spelled)), "")


def _unescaped(data: bytes, end: int, prefix: str) -> str:
    """What stands before a name without the letter that belongs to a backslash."""
    start = end - len(prefix)
    escape = _ESCAPE.match(prefix) if data[start - 1 : start] == b"\\" else None
    return prefix[escape.end() :] if escape else prefix


def _is_name(prefix: str, word: str, group: int) -> bool:
    """Whether the word that says it is secret is a word of the name, and not the end of another."""
    if group == DOUBTFUL and _OTHERS.search(prefix):
        return False
    joined = prefix[-1:].isalpha() and not (prefix[-1:].islower() and word[:1].isupper())
    return group == PHRASE or not joined


def _is_set(prefix: str, set_by: bytes) -> bool:
    """A blank alone gives a value only to a flag."""
    return bool(set_by.strip()) or prefix.startswith("--")


def _kind(word: str) -> str:
    return {"token": "token", "pass": "password"}.get(word.lower(), "secret")


def _secret(said: _Said) -> int:
    """How many characters of the value are secret."""
    value = said.value
    if said.quoted:
        return len(value) if _is_quoted_secret(said) else 0
    if not said.shell and (_CODE.match(value) or value.endswith(("(", ":"))):
        return 0
    end = _ENDS[said.ends].search(value)
    value = value[: end.start()] if end else value
    if not said.shell:
        value = value.rstrip(".:!?")
    return len(value) if _is_plain_secret(said, value) else 0


def _is_quoted_secret(said: _Said) -> bool:
    value = said.value.strip()
    if len(value) < SHORTEST or _refers(value):
        return False
    if any(char.isspace() for char in value):
        # Labels and messages begin with a large letter or end with a stop; a passphrase does not.
        return said.phrase and not value[0].isupper() and value[-1].isalnum()
    return said.sure or _is_doubtless(value)


def _is_plain_secret(said: _Said, value: str) -> bool:
    if len(value) < (SHORTEST if said.shell else SHORTEST_PLAIN) or _refers(value):
        return False
    if said.shell:
        return True
    if not said.sure:
        return _is_doubtless(value)
    has_digit = any(char.isdigit() for char in value)
    if _PLAIN.fullmatch(value):
        return has_digit and not value.isdigit()
    return has_digit or bool(_SIGNS.search(value if said.phrase else value.replace("-", "")))


def _refers(value: str) -> bool:
    """Whether a value is no secret but says where one is, or what it is called."""
    named = _NAMED.search(value) is not None and wordiness(value) >= NAMED
    return named or _REFERS.match(value) is not None


def _is_doubtless(value: str) -> bool:
    """Whether a value looks secret whatever its name."""
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return len(value) >= SHORTEST_DOUBTFUL and mixed and wordiness(value) < WORDY and not is_known(value)
