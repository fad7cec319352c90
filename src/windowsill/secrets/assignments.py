"""Find what is assigned to a name that says it is secret: in shell, env files, JSON, YAML, XML, code, flags.

A name alone says little (`token = next(tokens)`), so the value decides too. Where it is quoted, or an upper-case name
gets it as in a shell, nearly every value counts; where it could as well be code or prose, it must hold a digit or a
sign that words do not have. References to a secret (`$TOKEN`, `<token>`, `os.environ[...]`) are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from windowsill.secrets.entropy import is_known
from windowsill.secrets.patterns import Secret, compiled, mean_run

KINDS = ("password", "secret", "token", "api-key")

HINTS = ("pass", "pwd", "secret", "token", "key", "credential")

SHORTEST, SHORTEST_PLAIN, SHORTEST_DOUBTFUL = 4, 6, 8
"""Characters below which nothing is worth to be called a secret: in general, where quotes do not say that it is a
value, and where the name may be that of something else, such as a `token` of a text or a `secret` of a story."""

WORDS, NAMED = 4.0, 2.5
"""Mean length of words and pairs of digits above which a value under a doubtful name is words, and from which
a value with a word such as `key` in it is the name of a secret."""

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
_PHRASE, _KEY, _DOUBTFUL, _SET_BY, _QUOTED, _UNQUOTED = 1, 2, 3, 4, (5, 6, 7), 8
"""Groups of the pattern: the kinds of names, what stands between name and value, and the value."""

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
_CODE_END, _QUERY_END, _LINE_END = re.compile(r"[,;()}\]{\[]"), re.compile(r"[&;#,]"), re.compile(r"[,;)}\]]+$")
"""Where a value without quotes ends before the next blank: in a call, in an address, on a line of its own."""

_SIGNS = re.compile(r"[!#$%^&*+/=?~@:-]")
_ESCAPE = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class _Name(msgspec.Struct):
    """A name that says that its value is secret, and how it gets it."""

    group: int
    word: str
    is_shell: bool = False
    """An upper-case name that gets its value as in a shell, without blanks around."""
    end: re.Pattern[str] = _LINE_END
    """Where a value without quotes ends."""

    @property
    def kind(self) -> str:
        """The kind of secret."""
        if self.group == _DOUBTFUL:
            return {"token": "token", "pass": "password"}.get(self.word.lower(), "secret")
        return "password" if self.group == _PHRASE else "api-key"


def find(data: bytes) -> Iterator[Secret]:
    """Yield the values of secret names."""
    for match in compiled(_ASSIGNED).finditer(data):
        group = next(number for number in (_PHRASE, _KEY, _DOUBTFUL) if match.span(number)[0] >= 0)
        value_group = next(number for number in (*_QUOTED, _UNQUOTED) if match.span(number)[0] >= 0)
        (begin, word_end), (start, end) = match.span(group), match.span(value_group)
        set_by, word = data[slice(*match.span(_SET_BY))], data[begin:word_end].decode()
        prefix = _prefix(data, begin)
        if not _is_name(prefix, word, group) or not (set_by.strip() or prefix.startswith("--")):
            # A blank alone gives a value only to a flag.
            continue
        value, quoted = data[start:end].decode("utf-8", "surrogateescape"), value_group != _UNQUOTED
        before = data[begin - len(prefix) - 1 : begin - len(prefix)]
        if set_by == b">":
            if before != b"<" or "</" not in value:
                continue
            value, quoted = value.partition("</")[0], True  # tags say as clearly as quotes where it ends
        name = _Name(group, word, is_shell=set_by == b"=" and (prefix + word).isupper())
        if before in (b"?", b"&"):
            name.end = _QUERY_END
        elif b"=" in set_by and not name.is_shell:
            name.end = _CODE_END
        if size := _quoted_secret(name, value) if quoted else _plain_secret(name, value):
            yield Secret(name.kind, start, start + len(value[:size].encode("utf-8", "surrogateescape")))


def kind_under(name: str, value: str) -> str:
    """Return the kind of secret that a value of a document is because of its name; empty when it is none."""
    spelled = f'"{name}": "'.encode("utf-8", "surrogatepass")
    plain = value.translate(_SPELLED).encode("utf-8", "surrogatepass")
    return next((each.kind for each in find(spelled + plain + b'"') if each.start == len(spelled)), "")


def _prefix(data: bytes, end: int) -> str:
    """Return what of a name stands before its word, without the letter that belongs to a backslash."""
    before = _BEFORE.search(data[max(0, end - LONGEST_NAME) : end])
    prefix = before[0].decode() if before else ""
    start = end - len(prefix)
    escape = _ESCAPE.match(prefix) if data[start - 1 : start] == b"\\" else None
    return prefix[escape.end() :] if escape else prefix


def _is_name(prefix: str, word: str, group: int) -> bool:
    """Tell whether the word that says it is secret is a word of the name, and not the end of another."""
    if group == _DOUBTFUL and _OTHERS.search(prefix):
        return False
    joined = prefix[-1:].isalpha() and not (prefix[-1:].islower() and word[:1].isupper())
    return group == _PHRASE or not joined


def _quoted_secret(name: _Name, whole: str) -> int:
    """Return how many characters of a quoted value are secret: all or none."""
    value = whole.strip()
    if len(value) < SHORTEST or _refers(value):
        return 0
    if any(char.isspace() for char in value):
        # Labels and messages begin with a large letter or end with a stop; a passphrase does not.
        is_secret = name.group == _PHRASE and not value[0].isupper() and value[-1].isalnum()
    else:
        is_secret = name.group != _DOUBTFUL or _is_doubtless(value)
    return len(whole) if is_secret else 0


def _plain_secret(name: _Name, value: str) -> int:
    """Return how many characters of a value without quotes are secret."""
    if not name.is_shell and (_CODE.match(value) or value.endswith(("(", ":"))):
        return 0
    end = name.end.search(value)
    value = value[: end.start()] if end else value
    if name.is_shell:
        return len(value) if len(value) >= SHORTEST and not _refers(value) else 0
    value = value.rstrip(".:!?")
    if len(value) < SHORTEST_PLAIN or _refers(value):
        return 0
    has_digit = any(char.isdigit() for char in value)
    if name.group == _DOUBTFUL:
        is_secret = _is_doubtless(value)
    elif _PLAIN.fullmatch(value):
        is_secret = has_digit and not value.isdigit()
    else:
        is_secret = has_digit or bool(_SIGNS.search(value if name.group == _PHRASE else value.replace("-", "")))
    return len(value) if is_secret else 0


def _refers(value: str) -> bool:
    """Tell whether a value is no secret but says where one is, or what it is called."""
    named = _NAMED.search(value) is not None and mean_run(value) >= NAMED
    return named or _REFERS.match(value) is not None


def _is_doubtless(value: str) -> bool:
    """Tell whether a value looks secret whatever its name."""
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return len(value) >= SHORTEST_DOUBTFUL and mixed and mean_run(value) <= WORDS and not is_known(value)
