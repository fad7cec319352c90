"""The four detectors of secrets: keys of documented formats, private keys, random tokens, values of secret names.

Each yields a `Secret` for every one it finds in UTF-8 bytes. `Redactor` runs them and merges what they find.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache, lru_cache
from math import log2
from typing import TypeAlias

import msgspec

from windowsill.regex import Match, Pattern, compile_text
from windowsill.text import load_table

Range: TypeAlias = tuple[int, int]

WORDY = 3.5
"""Mean length of runs, see `mean_run`, from which a token is made of words."""

_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}")


class Secret(msgspec.Struct, frozen=True):
    """The kind of a secret and its place."""

    kind: str
    start: int
    end: int


@cache
def compiled(source: str) -> Pattern:
    """Compile a pattern of ours, once."""
    return compile_text(source, ascii_only=True)


def mean_run(token: str) -> float:
    """Return the mean length of words, abbreviations and pairs of digits: about 2 for noise, 4 and more for names."""
    runs = _RUN.findall(token)
    return sum(map(len, runs)) / max(1, len(runs))


def entropy(token: str) -> float:
    """Return Shannon's entropy, in bits per character."""
    size = len(token)
    return log2(size) - sum(count * log2(count) for count in Counter(token).values() if count > 1) / size


# Keys of documented formats.


class KeyFormat(msgspec.Struct, frozen=True):
    """The spelling of one kind of secret, a row of `formats.toml`."""

    kind: str
    hints: tuple[str, ...] = ()
    part: str = ""
    key: str = ""
    pattern: str = ""
    checks: tuple[str, ...] = ()
    any_case: bool = False

    def find(self, data: bytes) -> Iterator[Secret]:
        """Yield the keys of this format."""
        for match in compiled(self.pattern).finditer(data):
            start, end = match.span(1)
            if all(_CHECKS[name](data[start:end].decode("utf-8", "surrogateescape")) for name in self.checks):
                yield Secret(self.kind, start, end)

    def completed(self) -> KeyFormat:
        """Return the format with its whole pattern."""
        pattern = f"{_LEFT}({self.key})" if self.key else self.pattern
        hints = "|".join(self.hints).replace(".", "[.]")
        pattern = pattern.replace("<word>", _WORD).replace("<hints>", f"(?:{hints})")
        part = self.part.replace("<word>", _WORD).replace("<left>", _LEFT)
        return msgspec.structs.replace(self, pattern=pattern, part=part)


_LEFT = r"(?:\A|[^A-Za-z0-9_+-]|(?m:^)[+-]|\\[nrtbf][+-]?|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})"
"""The characters before a key: none that could belong to it, the sign of a line in a patch, or an escape."""
_WORD = "[A-Za-z0-9_-]"
GITHUB_LENGTH = 40
_WIDE = "\N{FULLWIDTH COLON}|\N{FULLWIDTH EQUALS SIGN}"


def _is_jwt(token: str) -> bool:
    """Tell whether the header can be read: many things have three parts with dots between them."""
    head = token.partition(".")[0]
    try:
        value = msgspec.json.decode(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (msgspec.DecodeError, ValueError):
        return False
    return isinstance(value, dict) and ("alg" in value or "typ" in value or "enc" in value)


_REFERENCE = re.compile(r"\$|%\w|\{.*\}$|<.*>$|\*+$|\.+$|:")


def _is_literal(password: str) -> bool:
    return _REFERENCE.match(password) is None


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _is_mixed(value: str) -> bool:
    """Tell whether it has letters and digits: words beside a stroke are alternatives, and numbers are shares."""
    return _has_digit(value) and any(char.isalpha() for char in value)


def _is_noise(key: str) -> bool:
    """Tell a key from a name with the same prefix, such as `sk-learn`."""
    return mean_run(key) < WORDY


def _is_credential(value: str) -> bool:
    return _has_digit(value) or value.endswith("=")


def _is_broken(key: str) -> bool:
    """Tell whether it is a whole key of GitHub that a terminal or an editor broke in two lines."""
    return sum(not char.isspace() for char in key) == GITHUB_LENGTH


def _is_login(value: str) -> bool:
    """Tell whether a value is `user:password` as base64."""
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _is_card(number: str) -> bool:
    """Tell whether the check digit of a card's number is right (Luhn)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_CHECKS: dict[str, Callable[[str], bool]] = {
    "broken": _is_broken,
    "card": _is_card,
    "credential": _is_credential,
    "digit": _has_digit,
    "jwt": _is_jwt,
    "literal": _is_literal,
    "login": _is_login,
    "mixed": _is_mixed,
    "noise": _is_noise,
}


@cache
def formats() -> tuple[KeyFormat, ...]:
    """Read the table of documented formats."""
    table = load_table("windowsill.secrets", "formats.toml")
    return tuple(row.completed() for row in msgspec.convert(table["formats"], list[KeyFormat]))


# Private keys over several lines.

PRIVATE_KEY = "private-key"
PRIVATE_KEY_HINTS = ("----BEGIN ", "PRIVATE KEY----")

LONGEST_BLOCK, LONGEST_LABEL = 32_768, 60
"""Bytes of a private key, twice the longest RSA key that is in use; and of the label at its end."""

_LABEL = r"-{4,5}BEGIN ([A-Z0-9 ]{0,40})-{4,5}|-{4,5}BEGIN ([A-Z0-9 ]{0,40}) BLOCK-{4,5}"
_KEY = r"""(?s)(?:\s|\\[nrt]|["'+,-])*(?:(?:[A-Za-z-]+: [^\n\\]*)(?:\s|\\[nrt])+)*[A-Za-z0-9+/=]{16,}"""
_LINES = (
    rf"""{_KEY}(?:(?:\s|\\[nrt]|["'+,-])+[A-Za-z0-9+/=]{{16,}})*(?:(?:\s|\\[nrt])+[A-Za-z0-9+/]{{1,15}}={{1,2}})?"""
)

SHORTEST_LINE = 16
"""Characters of a line of a private key that is not the last one."""

_LINE_BREAK, _LINE_FRAME = re.compile(rb"\r?\n|\\[nr]"), b" \t\"'+,>|-"
"""The end of a line, in JSON too, and what may stand around it in code, a quotation or a diff."""
_KEY_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def find_private_keys(data: bytes) -> tuple[list[Secret], list[Range]]:
    """Return the private keys, and the other blocks, in which nothing is secret: certificates and public keys."""
    keys: list[Secret] = []
    others: list[Range] = []
    for start, label_end, end in _blocks(data):
        if b"PRIVATE KEY" not in data[start:label_end]:
            others.append((start, end or label_end))
        elif end is not None:
            if compiled(_KEY).match(data, label_end, end) is not None:
                keys.append(Secret(PRIVATE_KEY, start, end))
        elif (lines := compiled(_LINES).match(data, label_end, min(len(data), label_end + LONGEST_BLOCK))) is not None:
            keys.append(Secret(PRIVATE_KEY, start, lines.span()[1]))
    return [*keys, *_headless(data, [*((key.start, key.end) for key in keys), *others])], others


def _headless(data: bytes, known: list[Range]) -> Iterator[Secret]:
    """Yield private keys whose first lines were cut off: the lines of base64 before an end that has no beginning."""
    ends, before = {end for _, end in known}, 0
    for match in compiled(r"-{4,5}END [A-Z0-9 ]{0,40}PRIVATE KEY-{4,5}").finditer(data):
        start, end = match.span()
        if end not in ends:
            first = _first_line(data, max(before, start - LONGEST_BLOCK), start)
            if start - first >= WRAPPED:
                yield Secret(PRIVATE_KEY, first, end)
        before = end


def _first_line(data: bytes, low: int, start: int) -> int:
    """Return where the lines of base64 before `start` begin; only the last of them may be short."""
    breaks = [low, *(match.end() for match in _LINE_BREAK.finditer(data, low, start))]
    first, last = start, start
    for begin in reversed(breaks):
        line = _LINE_BREAK.sub(b"", data[begin:last]).strip(_LINE_FRAME)
        short = len(line) < SHORTEST_LINE and first < start and line != b""
        if short or (line and not _KEY_LINE.fullmatch(line)):
            break
        last = begin
        first = begin if line else first
    return first


def _blocks(data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Yield where each block begins, where its label ends, and where it ends if that is before another begins."""
    closing = 0
    begins = [match.span() for match in compiled(_LABEL).finditer(data)]
    for place, (start, label_end) in enumerate(begins):
        if closing >= 0 and closing < label_end:
            closing = data.find(b"----END ", label_end)
        following = begins[place + 1][0] if place + 1 < len(begins) else len(data)
        end = None
        if 0 <= closing < min(following, label_end + LONGEST_BLOCK):
            dashes = data.find(b"----", closing + 8, closing + 8 + LONGEST_LABEL)
            after = dashes if dashes >= 0 else closing + 8
            while data[after : after + 1] == b"-":
                after += 1
            end = after
        yield start, label_end, end


# Tokens that look random.

HIGH_ENTROPY = "high-entropy"

SHORTEST_TOKEN = 20
"""Characters below which words and numbers can look random."""

LONGEST_TOKEN = 256
"""Characters above which a token is data: pictures, archives, signed thoughts. Longer keys have a format or a name."""

ENTROPY, HEX_ENTROPY = 3.5, 3.0
"""Bits per character: 20 random characters of 36 or 64 have about 4, text and repetitions have less, and so have
hexadecimal digits."""

HEX_LETTERS = 4
"""Letters below which hexadecimal digits are a number."""

LETTERS = 0.4
"""Share of letters below which a token is a number, a date or a version."""

DIGEST_LENGTHS = frozenset({24, 32, 40, 56, 64, 96, 128})
"""Hexadecimal digits of object ids, and of MD5 to SHA-512: they identify something and open nothing."""

WRAPPED = 48
"""Characters from which a line may be one of several lines of wrapped data."""

BEFORE, NEAR = 200, 64
"""Characters before a token in which an address may begin, and in which a word may name the token."""

_FIRST_DIGIT = "|".join(f"[A-Za-z+/_-]{{{place}}}[0-9][A-Za-z0-9+/_-]{{{19 - place},}}" for place in range(20))
CANDIDATE = rf"(?:{_FIRST_DIGIT}|[A-Za-z+/_-]{{20,}}[0-9][A-Za-z0-9+/_-]*)={{0,2}}"
"""Runs of at least 20 characters with a digit, by the place of the first one: most long names have none."""
_TOKEN_RUN = re.compile(rb"[A-Za-z0-9+/_=-]*")
_LONG = re.compile(rb"[A-Za-z0-9+/_=-]{20,}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_KNOWN = re.compile(
    r"(?i)(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9a-f]{128}|[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{56}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{24}"
    r"|0x[0-9a-f]{1,16}|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9-]+Z?)?)(?![0-9a-z])"
)
_ESCAPE = re.compile(rb"[nrtbf]|u[0-9A-Fa-f]{4}")
_SEPARATOR = re.compile(r"[-_/]")
_OTHER_SIGNS = re.compile(r"[^A-Za-z]+")
_PART = re.compile(r"[A-Za-z]*[0-9]*[A-Za-z]?|[0-9]+[A-Za-z]{0,2}")
"""A word, an abbreviation or a number: its digits are at the end or at the beginning, which is rare in noise."""
_NUMBER = re.compile(r"[0-9]{7}")
_FOLDER = re.compile(r"(?:^|[/_])[a-z]{3,}/")
_PREFIXED = re.compile(
    r"(?:toolu|srvtoolu|mcptoolu|tooluse|call|msg|req|resp|rs|fc|fco|ws|ci|cntr|cntnr|container|conv|chatcmpl|cmpl|gen"
    r"|run|step|thread|asst|vs|vsfs|file|files|batch|msgbatch|org|proj|user|ft|ftjob|modr|fp|item|event|evt|sess|rec"
    r")[_-]|b(?:[0-9a-f]{32}){1,2}$|sha(?:1|224|256|384|512)-|_Z|AAAA[BC]3NzaC|AAAAE2Vj|AAAAG"
    r"|iVBORw0KGgo|R0lGOD|JVBERi0|UEsDB|H4sIA"
)
"""Ids of providers' messages and calls, refs of kept outputs, integrity values of lock files, names that compilers
make, public SSH keys, pictures and archives as base64."""
_NAME_OF_ID = re.compile(
    rb"""(?ix)(?:^|[^a-z]|[a-z](?=ID|Id))
    (?:sha-?\d*|md5|hash(?:es)?|digest|checksums?|sums?|integrity|commit|revision|rev|head|parent|tree|blob|object|etag
      |fingerprint|signature|sig|thought_?signature|encrypted_content|uuid|guid|ids?|ref|refs|cursor|base64|h1|blake\w{0,4}
      |crc\d*|trace|span|request|build|image|layer|bundle|chunk|nonce|salt)
    ["'`\s:=,(\[<>@*-]{0,16}(?:(?:is|of|was|at)\s)?["'`(\[]?$"""
)
_ADDRESS = re.compile(rb"(?:://|www\.|data:|mailto:)[^\s\"'<>`]*$")


def find_by_entropy(data: bytes, quiet: Sequence[Range]) -> Iterator[Secret]:
    """Yield random tokens, except in the ranges of `quiet`, which are in order."""
    place = 0
    for match in compiled(CANDIDATE).finditer(data):
        start, end = match.span()
        if data[start - 1 : start] == b"\\" and (escape := _ESCAPE.match(data, start, end)) is not None:
            # In JSON text these letters belong to the backslash before them.
            start = escape.end()
        while place < len(quiet) and quiet[place][1] <= start:
            place += 1
        if place < len(quiet) and quiet[place][0] < end:
            continue
        token = data[start:end].decode()
        if SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN and is_random(token) and not _is_explained(data, start, end):
            yield Secret(HIGH_ENTROPY, start, end)


def is_known(token: str) -> bool:
    """Tell whether a token is an id or a digest by its form."""
    return _PREFIXED.match(token) is not None or len(_KNOWN.sub("", token)) < len(token) - SHORTEST_TOKEN


def is_random(token: str) -> bool:
    """Tell whether a token, by itself, looks random."""
    letters = len(_OTHER_SIGNS.sub("", token))
    if letters == len(token) or _PREFIXED.match(token):
        return False
    if _HEX.fullmatch(token):
        return len(token) not in DIGEST_LENGTHS and letters >= HEX_LETTERS and entropy(token) >= HEX_ENTROPY
    if letters < LETTERS * len(token) or _NUMBER.search(token) or _FOLDER.search(token):
        return False
    parts = _SEPARATOR.split(_KNOWN.sub("", token))
    if sum(len(part) for part in parts if not _PART.fullmatch(part)) < SHORTEST_TOKEN:
        return False
    wordy = token != token.upper() and mean_run(token) >= WORDY
    return not wordy and entropy(token) >= ENTROPY


def _is_explained(data: bytes, start: int, end: int) -> bool:
    """Tell whether the text around a token shows that it is no key."""
    before, after = data[max(0, start - BEFORE) : start], data[end : end + 2]
    if before.endswith((b".", b"~", b"@", b"\\", b"base64,")) or data[start : start + 1] == b"/":
        # A part of a dotted name, of a version, of a path.
        return True
    if after[:1] in (b".", b"@", b"(") and after[1:].isalnum():
        # A name goes on: with a further part, the host of an address, a call.
        return True
    line = before[before.rfind(b"\n") + 1 :]
    # A word inside another long token explains nothing: that one may be a secret itself.
    near = _LONG.sub(b"|", line[-NEAR:])
    return bool(_NAME_OF_ID.search(near) or _ADDRESS.search(line)) or _is_wrapped(data, start, end)


def _is_wrapped(data: bytes, start: int, end: int) -> bool:
    """Tell whether the line above or below is as full as this one."""
    size = end - start
    if size < WRAPPED:
        return False
    above, below = data[max(0, start - 1 - size) : max(0, start - 1)], data[end + 1 : end + 1 + size]
    return any(len(line) == size and _TOKEN_RUN.fullmatch(line) is not None for line in (above, below))


# Values assigned to secret names.

ASSIGNMENT_KINDS = ("password", "secret", "token", "api-key")

ASSIGNMENT_HINTS = ("pass", "pwd", "secret", "token", "key", "credential")

SHORTEST, SHORTEST_PLAIN, SHORTEST_DOUBTFUL = 4, 6, 8
"""The fewest characters of a secret: between quotes, without quotes, and under a name that is often used for something
else, such as a `token` of a text or a `secret` of a story."""

WORDS, NAMED = 4.0, 2.5
"""Mean length of runs above which a value under a doubtful name is words, and from which a value with a word such as
`key` in it is the name of a secret."""

LONGEST_NAME = 64
"""Characters of a name before the word that makes it secret."""

_NAME = (
    r"(?:(pass(?:word|wd|phrase|code)|pwd)|((?:api|access|auth|private|secret|encryption|signing|account|master|session"
    r"|subscription|service|app|license)[ _-]?key(?:[_-]?base|[_-]?data)?|client[_-]?key[_-]?data|client[_-]?secret"
    r"|(?:access|auth|refresh|bearer|bot|api)[_-]?token)|(secret|token|credentials?|pass))"
    r"(?:[_-](?:prod|dev|test|staging|live|old|new|[0-9]{1,2}))?"
)
_SIGN = (
    r"""[ \t]*:?[ \t]*(?:&(?:'static )?)?(?:string|str|secretstr|optional\[str\]|bytes)"""
    r"""(?:[ \t]*\|[ \t]*\w{1,20})?[ \t]*=[ \t]*"""
    rf"""|(?:\\{{0,7}}["'`])?[ \t]*(?:=>|:=|[:=]|{_WIDE})[ \t]*(?:\[\s{{0,16}})?"""
    r"""|\\{0,7}["']\s*:\s*(?:\[\s*)?"""
    r"""|\\{0,7}["']\s*,\s*\\{0,7}["']value\\{0,7}["']\s*:\s*|[ \t]*\r?\n[ \t]*value:[ \t]*|:[ \t]*\r?\n[ \t]*"""
    r"""|>"""
)
"""Assignments with a type; on one line; in JSON over several; as a pair of `name` and `value`, also in YAML; on the
next line; in XML."""
_SET = rf"({_SIGN}|[ \t]{{1,8}}(?:is:?[ \t]{{1,8}})?)"
"""The same, or in words."""
_VALUE = (
    r"""(?:[bru]{0,2}(?:\\{1,7}"([^"\\\r\n]*)\\{1,7}"|"((?:[^"\\\r\n]|\\.)*)"|'((?:[^'\\\r\n]|\\.)*)')"""
    r"""|([^\s"'`\\]+))"""
)
ASSIGNMENT = rf"(?i){_NAME}(?:{_SIGN}|[ \t]{{1,8}}is)|--[a-z0-9_.-]*{_NAME}[ \t]"
"""A name and what assigns: without them there is no value. A blank alone gives one only to a flag."""
_ASSIGNED = rf"(?i){_NAME}{_SET}{_VALUE}"
_PHRASE, _ASSIGNED_KEY, _DOUBTFUL, _SET_BY, _QUOTED, _UNQUOTED = 1, 2, 3, 4, (5, 6, 7), 8
"""Groups of the pattern: the kinds of names, the assignment, and the value."""

_PREFIX = re.compile(rb"[A-Za-z0-9_.-]*\Z")
_OTHERS = re.compile(r"(?i)(?:next|page|continuation|stop|pad|eos|bos|unk|sep|cls|mask|special|csrf|per|max|min)[_-]?$")
"""The beginning of a name whose `token` is a piece of text, or the place where a list goes on."""

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
"""Placeholders for a secret, and names of its source."""

_NAMED = re.compile(r"(?i)key|token|secret|passw|credential")
"""A word in the name of a secret, or in an example of one, but in no random secret."""

_SPELLED = str.maketrans({"\\": "/", '"': "'", "\n": " ", "\r": " "})
"""Replacements for characters that would end a quoted value; only the form of the value matters here."""

_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$|[A-Za-z_][\w.]*[(\[]")
_CODE_END, _QUERY_END, _LINE_END = re.compile(r"[,;()}\]{\[]"), re.compile(r"[&;#,]"), re.compile(r"[,;)}\]]+$")
"""The end of a value without quotes before the next blank: in a call, in an address, on a line of its own."""

_SAID, _PLAIN_WORD = frozenset({"pass", "secret"}), re.compile(r"[A-Za-z0-9!@#$%^&*]{6,}")
"""Names that people write before a password on a line of its own, and what a password may be there: one word."""

_JOINED = re.compile(r"[a-z]{18,}(?<!ly)(?<!able)")
"""Several words written as one: longer than any that is said of a password."""

_SIGNS = re.compile(r"[!#$%^&*+/=?~@:-]")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def find_assignments(data: bytes, signs: Container[int] = ()) -> Iterator[Secret]:
    """Yield the values of secret names; at the places of `signs` text begins that only reads like an assignment."""
    for match, begin, prefix, set_by in _assignments(data, signs):
        group = next(number for number in (_PHRASE, _ASSIGNED_KEY, _DOUBTFUL) if match.span(number)[0] >= 0)
        value_group = next(number for number in (*_QUOTED, _UNQUOTED) if match.span(number)[0] >= 0)
        word, (start, end) = data[begin : match.span(group)[1]].decode(), match.span(value_group)
        if not _is_name(prefix, word, group):
            continue
        value, quoted = data[start:end].decode("utf-8", "surrogateescape"), value_group != _UNQUOTED
        before = data[begin - len(prefix) - 1 : begin - len(prefix)]
        if set_by == b">":
            if before != b"<" or "</" not in value:
                continue
            value, quoted = value.partition("</")[0], True  # tags mark the end of a value as clearly as quotes
        if b"\n" in set_by and set_by.lstrip().startswith(b":") and (group != _PHRASE or not _ends_line(data, end)):
            continue
        is_shell = set_by == b"=" and (prefix + word).isupper()
        if quoted:
            size = len(value) if _is_quoted_secret(value, group) else 0
        elif is_shell:
            size = _shell_secret(value, _QUERY_END if before in (b"?", b"&") else _LINE_END)
        else:
            value_end = _QUERY_END if before in (b"?", b"&") else _CODE_END if b"=" in set_by else _LINE_END
            size = _plain_secret(value, group, value_end)
            if not size and group == _DOUBTFUL and word.lower() in _SAID and not prefix and _ends_line(data, end):
                size = len(value) if _PLAIN_WORD.fullmatch(value) and not _refers(value) else 0
        if size:
            yield Secret(_kind(group, word), start, start + len(value[:size].encode("utf-8", "surrogateescape")))


def _assignments(data: bytes, signs: Container[int]) -> Iterator[tuple[Match, int, str, bytes]]:
    """Yield matches with the place of the word, what stands before it in its name, and what assigns the value."""
    for match in compiled(_ASSIGNED).finditer(data):
        begin = match.start()
        if begin - 1 in signs:
            continue
        set_by, prefix = data[slice(*match.span(_SET_BY))], _prefix(data, begin)
        # A blank alone gives a value only to a flag.
        if set_by.strip() or prefix.startswith("--"):
            yield match, begin, prefix, set_by


def _ends_line(data: bytes, end: int) -> bool:
    return data[end : end + 1] in (b"", b"\r", b"\n")


def kind_under(name: str, value: str) -> str:
    """Return the kind of secret that a value is because of its name in a document; empty when it is none."""
    if not may_name(name):
        return ""
    spelled = f'"{name}": "'.encode("utf-8", "surrogatepass")
    plain = value.translate(_SPELLED).encode("utf-8", "surrogatepass")
    return next((each.kind for each in find_assignments(spelled + plain + b'"') if each.start == len(spelled)), "")


@lru_cache(maxsize=4_096)
def may_name(name: str) -> bool:
    """Tell whether a name has a word without which it names no secret: a document repeats the same few names."""
    lowered = name.lower()
    return any(hint in lowered for hint in ASSIGNMENT_HINTS)


def plain_kind_under(name: str, value: str) -> str:
    """Return the same for a value that may as well be a word of a text."""
    return kind_under(name, value) if _has_digit(value) and not any(map(str.isspace, value)) else ""


def _kind(group: int, word: str) -> str:
    if group == _DOUBTFUL:
        return {"token": "token", "pass": "password"}.get(word.lower(), "secret")
    return "password" if group == _PHRASE else "api-key"


def _prefix(data: bytes, end: int) -> str:
    """Return the part of a name before its word, without the letter of an escape."""
    match = _PREFIX.search(data, max(0, end - LONGEST_NAME), end)
    start = match.start() if match else end
    if data[start - 1 : start] == b"\\" and (escape := _ESCAPE.match(data, start, end)) is not None:
        start = escape.end()
    return data[start:end].decode()


def _is_name(prefix: str, word: str, group: int) -> bool:
    """Tell whether the secret word is a whole word of the name, not the end of another."""
    if group == _DOUBTFUL and _OTHERS.search(prefix):
        return False
    joined = prefix[-1:].isalpha() and not (prefix[-1:].islower() and word[:1].isupper())
    return group == _PHRASE or not joined


def _is_quoted_secret(value: str, group: int) -> bool:
    value = value.strip()
    if len(value) < SHORTEST or _refers(value):
        return False
    if any(char.isspace() for char in value):
        # Labels and messages begin with a capital or end with a stop; a passphrase does not.
        return group == _PHRASE and not value[0].isupper() and value[-1].isalnum()
    return group != _DOUBTFUL or _is_doubtless(value)


def _shell_secret(value: str, end: re.Pattern[str]) -> int:
    """Return the length of the secret in a value set as in a shell: an upper-case name, no blanks."""
    value = end.split(value, maxsplit=1)[0]
    return len(value) if len(value) >= SHORTEST and not _refers(value) else 0


def _plain_secret(value: str, group: int, end: re.Pattern[str]) -> int:
    """Return the length of the secret in a value without quotes."""
    if _CODE.match(value) or value.endswith(("(", ":")):
        return 0
    value = end.split(value, maxsplit=1)[0].rstrip(".:!?")
    if len(value) < SHORTEST_PLAIN or _refers(value):
        return 0
    if group == _DOUBTFUL:
        is_secret = _is_doubtless(value)
    elif _PLAIN.fullmatch(value):
        joined = group == _PHRASE and end is _LINE_END and _JOINED.fullmatch(value)
        is_secret = bool(joined) or (_has_digit(value) and not value.isdigit())
    else:
        signs = _SIGNS.search(value if group == _PHRASE else value.replace("-", ""))
        is_secret = _has_digit(value) or signs is not None
    return len(value) if is_secret else 0


def _refers(value: str) -> bool:
    """Tell whether a value is a reference to a secret or the name of one."""
    named = _NAMED.search(value) is not None and mean_run(value) >= NAMED
    return named or _REFERS.match(value) is not None


def _is_doubtless(value: str) -> bool:
    """Tell whether a value looks secret whatever its name."""
    mixed = _has_digit(value) and any(char.isalpha() for char in value)
    return len(value) >= SHORTEST_DOUBTFUL and mixed and mean_run(value) <= WORDS and not is_known(value)
