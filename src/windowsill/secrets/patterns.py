"""Keys of documented formats: a table of them, and private keys over several lines.

What every detector uses stands here too: `Secret`, compiled patterns, and the measure that tells words from noise.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

import msgspec

from windowsill.regex import Pattern, compile_ascii

PRIVATE_KEY = "private-key"
PRIVATE_KEY_HINT = "----BEGIN "

LONGEST_BLOCK, LONGEST_LABEL = 32_768, 60
"""Bytes from the beginning of a private key to its end, twice the longest RSA key that is in use; and of a label."""

WORDY = 3.5
"""Mean length of the runs from which what has the form of a key is a name: noise of that length has about 2."""

Range: TypeAlias = tuple[int, int]


class Secret(msgspec.Struct, frozen=True):
    """A secret: what kind it is, and where it stands."""

    kind: str
    start: int
    end: int


@cache
def compiled(source: str) -> Pattern:
    """Compile a pattern of ours, once."""
    return compile_ascii(source)


_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}")


def mean_run(token: str) -> float:
    """Return the mean length of words, abbreviations and pairs of digits: about 2 for noise, 4 and more for names."""
    runs = _RUN.findall(token)
    return sum(map(len, runs)) / max(1, len(runs))


class KeyFormat(msgspec.Struct, frozen=True):
    """How one kind of secret is spelled; the first group of the pattern is the secret itself."""

    kind: str
    hints: tuple[str, ...]
    """One of these stands in every text that holds such a key."""
    pattern: str
    check: Callable[[str], bool] | None = None
    """What a pattern cannot say."""
    any_case: bool = False
    """Whether the hints may be spelled in large letters too."""

    def find(self, data: bytes) -> Iterator[Secret]:
        """Yield the keys of this format."""
        for match in compiled(self.pattern).finditer(data):
            start, end = match.span(1)
            if self.check is None or self.check(data[start:end].decode("utf-8", "surrogateescape")):
                yield Secret(self.kind, start, end)


_LEFT = r"(?:\A|[^A-Za-z0-9_+-]|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})"
"""What may stand before a key: nothing that could belong to it, or an escape, whose last letter does not."""
_WORD = "[A-Za-z0-9_-]"


def _key(kind: str, hint: str | tuple[str, ...], pattern: str, check: Callable[[str], bool] | None = None) -> KeyFormat:
    return KeyFormat(kind, (hint,) if isinstance(hint, str) else hint, f"{_LEFT}({pattern})", check)


def _is_jwt(token: str) -> bool:
    """Tell whether its header can be read: three parts with dots between them are many things."""
    head = token.partition(".")[0]
    try:
        value = msgspec.json.decode(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return False
    return isinstance(value, dict) and ("alg" in value or "typ" in value or "enc" in value)


_REFERENCE = re.compile(r"\$|%\w|\{.*\}$|<.*>$|\*+$|\.+$|:")


def _is_stated(password: str) -> bool:
    return _REFERENCE.match(password) is None


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _is_noise(key: str) -> bool:
    return mean_run(key) < WORDY


def _is_drawn(key: str) -> bool:
    """Tell whether a prefix that words have too begins a key: `sk-learn` does not."""
    return _has_digit(key) and _is_noise(key)


SERVICES = (
    "AGE-SECRET-KEY-1|ATATT3|dckr_pat_|doo_v1_|dop_v1_|dor_v1_|figd_|glc_|glsa_|gsk_|hvb.|hvs.|lin_api_|ntn_|nvapi-"
    "|pplx-|pul-|r8_|rubygems_|shpat_|shpca_|shppa_|shpss_|sntrys_|sntryu_|sq0atp-|sq0csp-|tskey-|tvly-|xai-"
)
"""Prefixes that one service gives to its keys, with nothing else to tell them by."""

GITLAB = "glpat-|glptt-|gldt-|glrt-|glrtr-|glsoat-|glft-|glcbt-|glagent-|glimt-|gloas-"

FORMATS: tuple[KeyFormat, ...] = (
    _key("aws-access-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    KeyFormat(
        "aws-secret-key",
        ("secret",),
        r"""(?i:secret[_ -]?(?:access[_ -]?)?key)[\\"'`\s:=>]{1,12}([A-Za-z0-9/+]{40,}={0,2})""",
        _is_noise,
        any_case=True,
    ),
    _key("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "gh[pousr]_[A-Za-z0-9_]{30,}"),
    _key("github-token", "github_pat_", "github_pat_[A-Za-z0-9_]{22,}"),
    _key("gitlab-token", tuple(GITLAB.split("|")), rf"(?:{GITLAB}){_WORD}{{20,}}(?:\.{_WORD}+)*"),
    _key("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    _key("slack-token", "xapp-", "xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    KeyFormat("slack-webhook", ("hooks.slack",), r"hooks\.slack(?:-gov)?\.com/[a-z]+/([A-Za-z0-9/_+-]{20,})"),
    _key("stripe-key", ("sk_", "rk_", "pk_"), "[srp]k_(?:live|test)_[A-Za-z0-9_]{10,}"),
    _key("stripe-key", "whsec_", "whsec_[A-Za-z0-9+/=_-]{20,}"),
    _key("anthropic-key", "sk-ant-", rf"sk-ant-{_WORD}{{10,}}"),
    _key("openai-key", "sk-", rf"sk-(?:proj|svcacct|admin|None|or-v1)-{_WORD}{{20,}}"),
    _key("openai-key", "sk-", rf"sk-{_WORD}{{20,}}", _is_drawn),
    _key("google-key", "AIza", rf"AIza{_WORD}{{35,}}"),
    _key("google-token", "ya29.", rf"ya29\.{_WORD}{{20,}}(?:\.{_WORD}+)*"),
    _key("google-token", "1//0", rf"1//0{_WORD}{{30,}}"),
    _key("google-secret", "GOCSPX-", rf"GOCSPX-{_WORD}{{20,}}"),
    KeyFormat("azure-key", ("Key=",), r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})"),
    KeyFormat("azure-signature", ("sig=",), r"[?&;]sig=([A-Za-z0-9%/+_=-]{30,})"),
    _key("sendgrid-key", "SG.", rf"SG\.{_WORD}{{16,}}\.{_WORD}{{16,}}"),
    _key("twilio-key", "SK", r"SK[0-9a-f]{32}\b"),
    _key("mailgun-key", "key-", r"key-[0-9a-f]{32}\b"),
    _key("npm-token", "npm_", "npm_[A-Za-z0-9]{30,}"),
    _key("pypi-token", "pypi-", rf"pypi-{_WORD}{{50,}}"),
    _key("huggingface-token", ("hf_", "api_org_"), "(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _key("discord-token", ".", rf"[MNO]{_WORD}{{23,}}\.{_WORD}{{6}}\.{_WORD}{{27,}}"),
    KeyFormat("discord-webhook", ("webhooks/",), rf"discord(?:app)?\.com/api/webhooks/[0-9]+/({_WORD}{{50,}})"),
    _key("telegram-token", ":AA", rf"[0-9]{{8,10}}:AA{_WORD}{{33,}}"),
    _key("service-key", tuple(SERVICES.split("|")), rf"(?:{SERVICES.replace('.', '[.]')}){_WORD}{{20,}}", _is_drawn),
    _key("jwt", "eyJ", rf"eyJ{_WORD}{{8,}}\.{_WORD}+\.(?:{_WORD}|\.{_WORD})*", _is_jwt),
    KeyFormat(
        "authorization",
        ("authorization",),
        r"""(?i:authorization)\\?["'`]?\s{0,4}[:=,]\s{0,4}\\?["'`]?(?i:(?:bearer|basic|token|apikey|digest)\s+)?"""
        r"""([A-Za-z0-9+/_~.=-]{8,})""",
        lambda value: _has_digit(value) or value.endswith("="),
        any_case=True,
    ),
    KeyFormat(
        "authorization",
        ("bearer", "basic"),
        r"(?i:bearer|basic)\s+([A-Za-z0-9+/_~.=-]{16,})",
        _has_digit,
        any_case=True,
    ),
    KeyFormat(
        "url-password",
        ("://",),
        r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\\\[\]?#]*:([^\s/@"'<>\\\[\]]+)@[A-Za-z0-9_\[.-]""",
        _is_stated,
    ),
    # Programs that are given a password without a name for it.
    KeyFormat(
        "password",
        ("curl",),
        r"""\bcurl\b[^\n|;]*?\s(?:-u|--user)[ =]?["']?[^\s:"'$]+:([^\s"'$][^\s"']{2,})""",
        _is_stated,
    ),
    KeyFormat("password", ("sshpass",), r"""\bsshpass\s+-p\s*["']?([^\s"'$][^\s"']{2,})""", _is_stated),
    KeyFormat(
        "password",
        ("mysql",),
        r"""\bmysql(?:dump|admin|import)?\b[^\n|;]*?\s-p([^\s"'$-][^\s"']{3,})""",
        lambda key: _is_stated(key) and _has_digit(key),
    ),
    KeyFormat(
        "netrc-password", ("login",), r"(?i)\blogin\s+[\w.@+-]+(?:\s|\\[nrt])+password\s+([^\s\"'\\]+)", any_case=True
    ),
    KeyFormat(
        "cookie",
        ("set-cookie",),
        r"""(?i)set-cookie\\?["']?\s*[:=,]\s*\\?["']?[^=;\s"'\\]+=([^;\s"'\\]{8,})""",
        any_case=True,
    ),
    KeyFormat(
        "cookie",
        ("cookie:",),
        r"""(?i)(?:\A|[^-\w])cookie:\s*([\w.$-]+=[^;\s"'\\]+(?:;[ \t]*[\w.$-]+=[^;\s"'\\]+)*)""",
        any_case=True,
    ),
)

_LABEL = r"-{4,5}BEGIN ([A-Z0-9 ]{0,40})-{4,5}|-{4,5}BEGIN ([A-Z0-9 ]{0,40}) BLOCK-{4,5}"
_KEY = r"""(?s)(?:\s|\\[nrt]|["'+,-])*(?:(?:[A-Za-z-]+: [^\n\\]*)(?:\s|\\[nrt])+)*[A-Za-z0-9+/=]{16,}"""
_LINES = (
    rf"""{_KEY}(?:(?:\s|\\[nrt]|["'+,-])+[A-Za-z0-9+/=]{{16,}})*(?:(?:\s|\\[nrt])+[A-Za-z0-9+/]{{1,15}}={{1,2}})?"""
)


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
    return keys, others


def _blocks(data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Yield where each block begins, where its label ends, and where it ends if that is before another begins."""
    closing, after = 0, 0
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
