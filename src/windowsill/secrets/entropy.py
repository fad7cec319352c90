"""Find tokens that look drawn by chance and that nothing around them explains: keys of formats nobody listed.

A token counts by its length, its kinds of characters and Shannon's entropy. What is left alone, because it is public or
of no use without something else: digests and commits by their length, ids, UUIDs, versions, numbers and dates, names
made of words, paths and addresses, pictures and other long data, and whatever the word before it calls a hash, an id or
a signature. A key that looks like one of these is found by the name it is assigned to (see `assignments`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log2

from windowsill.secrets.patterns import Range, Secret, compiled, mean_run

KIND = "high-entropy"

SHORTEST = 20
"""Characters below which words and numbers can look like chance."""

LONGEST = 256
"""Characters above which it is data: pictures, archives, signed thoughts. Longer keys have a format or a name."""

ENTROPY, HEX_ENTROPY = 3.5, 3.0
"""Bits per character: 20 characters drawn from 36 or 64 have about 4, text and repetitions have less. Hexadecimal
digits have less too, as there are only 16."""

WORDY = 3.5
"""Mean length of the runs of one kind of character from which a token is made of words: noise has about 2."""

HEX_LETTERS = 4
"""Letters below which hexadecimal digits are a number."""

LETTERS = 0.4
"""Share of letters below which it is a number, a date or a version."""

DIGEST_LENGTHS = frozenset({24, 32, 40, 56, 64, 96, 128})
"""Hexadecimal digits of object ids, and of MD5 to SHA-512: what they name is found by them, nothing is opened."""

WRAPPED = 48
"""Characters of a line that may be one of several that data was wrapped into."""

BEFORE, NEAR = 200, 64
"""Characters before a token in which an address may begin, and in which the word stands that says what it is."""

_FIRST_DIGIT = "|".join(f"[A-Za-z+/_-]{{{place}}}[0-9][A-Za-z0-9+/_-]{{{19 - place},}}" for place in range(20))
_CANDIDATE = rf"(?:{_FIRST_DIGIT}|[A-Za-z+/_-]{{20,}}[0-9][A-Za-z0-9+/_-]*)={{0,2}}"
"""Runs of at least 20 characters with a digit, by where the first one stands: most long names have none."""
_RUN = re.compile(rb"[A-Za-z0-9+/_=-]*")
_LONG = re.compile(rb"[A-Za-z0-9+/_=-]{20,}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_KNOWN = re.compile(
    r"(?i)(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9a-f]{128}|[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{56}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{24}"
    r"|0x[0-9a-f]{1,16}|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9-]+Z?)?)(?![0-9a-z])"
)
_ESCAPE = re.compile(rb"[nrtbf]|u[0-9A-Fa-f]{4}")
_SEPARATOR = re.compile(r"[-_/]")
_PART = re.compile(r"[A-Za-z]*[0-9]*[A-Za-z]?|[0-9]+[A-Za-z]{0,2}")
"""A word, an abbreviation or a number: digits stand at its end or at its beginning, as they seldom do in noise."""
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
_CALLED = re.compile(
    rb"""(?ix)(?:^|[^a-z]|[a-z](?=ID|Id))
    (?:sha-?\d*|md5|hash(?:es)?|digest|checksums?|sums?|integrity|commit|revision|rev|head|parent|tree|blob|object|etag
      |fingerprint|signature|sig|thought_?signature|encrypted_content|uuid|guid|ids?|ref|refs|cursor|base64|h1|blake\w{0,4}
      |crc\d*|trace|span|request|build|image|layer|bundle|chunk|nonce|salt)
    ["'`\s:=,(\[<>@*-]{0,16}(?:(?:is|of|was|at)\s)?["'`(\[]?$"""
)
_ADDRESS = re.compile(rb"(?:://|www\.|data:|mailto:)[^\s\"'<>`]*$")


def find(data: bytes, quiet: Sequence[Range]) -> Iterator[Secret]:
    """Yield tokens drawn by chance, except in the ranges of `quiet`, which are in order."""
    place = 0
    for match in compiled(_CANDIDATE).finditer(data):
        start, end = match.span()
        if data[start - 1 : start] == b"\\" and (escape := _ESCAPE.match(data, start, end)) is not None:
            # In text that is spelled as JSON these belong to the backslash before them.
            start = escape.end()
        while place < len(quiet) and quiet[place][1] <= start:
            place += 1
        if place < len(quiet) and quiet[place][0] < end:
            continue
        token = data[start:end].decode()
        if SHORTEST <= len(token) <= LONGEST and is_random(token) and not _is_explained(data, start, end):
            yield Secret(KIND, start, end)


def is_known(token: str) -> bool:
    """Tell whether a token is an id or a digest by its form."""
    return _PREFIXED.match(token) is not None or len(_KNOWN.sub("", token)) < len(token) - SHORTEST


def is_random(token: str) -> bool:
    """Tell whether a token, by itself, looks drawn by chance."""
    letters = sum(char.isalpha() for char in token)
    if letters == len(token) or _PREFIXED.match(token):
        return False
    if _HEX.fullmatch(token):
        return len(token) not in DIGEST_LENGTHS and letters >= HEX_LETTERS and entropy(token) >= HEX_ENTROPY
    if letters < LETTERS * len(token) or _NUMBER.search(token) or _FOLDER.search(token):
        return False
    parts = _SEPARATOR.split(_KNOWN.sub("", token))
    if sum(len(part) for part in parts if not _PART.fullmatch(part)) < SHORTEST:
        return False
    wordy = any(char.islower() for char in token) and mean_run(token) >= WORDY
    return not wordy and entropy(token) >= ENTROPY


def entropy(token: str) -> float:
    """Return Shannon's entropy, in bits per character."""
    size = len(token)
    return log2(size) - sum(count * log2(count) for count in Counter(token).values() if count > 1) / size


def _is_explained(data: bytes, start: int, end: int) -> bool:
    """Tell whether what stands around a token says that it is no key."""
    before, after = data[max(0, start - BEFORE) : start], data[end : end + 2]
    if before.endswith((b".", b"~", b"@", b"\\", b"base64,")) or data[start : start + 1] == b"/":
        # A part of a dotted name, of a version, of a path.
        return True
    if after[:1] in (b".", b"@", b"(") and after[1:].isalnum():
        # A name goes on: with a further part, the host of an address, a call.
        return True
    line = before[before.rfind(b"\n") + 1 :]
    # A word inside another token of this kind says nothing: that one may be a secret itself.
    called = _LONG.sub(b"|", line[-NEAR:])
    return bool(_CALLED.search(called) or _ADDRESS.search(line)) or _is_wrapped(data, start, end)


def _is_wrapped(data: bytes, start: int, end: int) -> bool:
    """Tell whether a neighbouring line is as full as this one."""
    size = end - start
    if size < WRAPPED:
        return False
    above, below = data[max(0, start - 1 - size) : max(0, start - 1)], data[end + 1 : end + 1 + size]
    return any(len(line) == size and _RUN.fullmatch(line) is not None for line in (above, below))
