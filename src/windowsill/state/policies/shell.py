"""What a shell command names: paths and hosts, as far as its words show it.

Best effort, for honest mistakes and plain attempts: quotes, escapes, redirections, options, braces, variables of this
process, folders that are changed to, scripts after `-c` and `-e`, and substitutions are looked through. What a command
computes (`printf`, `base64`, a script it downloads) cannot be seen here. The texts of here-documents are looked at as
well, because they may be run.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, product

DEEPEST = 3
"""Scripts inside scripts that are looked at."""

CALLERS = frozenset({
    "curl", "wget", "http", "https", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "netcat", "telnet", "ping",
})  # fmt: skip
"""Programs whose plain words are hosts."""

WRAPPERS = frozenset({
    "sudo", "doas", "env", "command", "exec", "nohup", "nice", "time", "timeout", "xargs", "stdbuf", "setsid", "watch",
    "if", "then", "elif", "else", "while", "until", "do", "!", "{",
})  # fmt: skip
"""Programs that run the program behind them, and words of the shell that a command follows."""

MOVERS = frozenset({"cd", "pushd", "-C", "--directory", "--chdir"})
"""What is followed by the folder in which relative paths begin from there on."""

LONGEST_FOLDER = 4_096
"""Characters of a folder that is changed to: no system takes longer ones."""

MOST_SPELLED = 64
"""Words that one word with braces is spelled out to."""

_NO_HOST_AFTER = frozenset({
    "-o", "--output", "-O", "-T", "--upload-file", "-d", "--data", "--data-binary", "--data-raw", "-H", "--header",
    "-A", "-u", "--user", "-X", "--request", "-i", "-p", "-P", "-c", "-n", "-w", "-m", "-F", "-e", "-b", "-l",
})  # fmt: skip
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_LOGIN = re.compile(r"(?:[\w.-]+@)(?P<host>[\w.-]+)(?::|$)")
_HOST = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w-]+(?:\.[\w-]+)+|localhost|\[[0-9a-fA-F:]+\])(?P<port>:\d+)?(?:[:/].*)?")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_ROUGHLY = re.compile(r"[^\s;|&<>()'\"`]+|[;|&\n]+")
_BREAKS = re.compile(r"[();<>|&\n]+")
_REDIRECTS = re.compile(r"<{1,2}|[<>]?>[>|]?|[<>]&|&>{1,2}")
_ENDS = re.compile(rf"(?!(?:{_REDIRECTS.pattern})$).*", re.DOTALL)
"""Of these, what ends a command; a redirection does not."""
_SETS = re.compile(r"\w+=.*|-.*|\d+[smhd]?", re.DOTALL)
_BRACES = re.compile(r"\{([^{}\s,]*(?:,[^{}\s,]*)+)\}")
_PARTS = re.compile(r"[=:,@]")
_ROOTED = re.compile(r"[/~]|\.\.")
_SCRIPT = re.compile(r"-[a-z]*c|-[a-z]{0,2}e|--eval|--command")


def paths(words: Iterable[str]) -> list[str]:
    """Everything among the words of a command that may be a path, each once, in whichever folder it may run by then."""
    found: dict[str, None] = {}
    folder = before = ""
    for word in words:
        if before in MOVERS and not word.startswith("-"):
            folder = os.path.join(folder, word)[:LONGEST_FOLDER]  # noqa: PTH118 - `..` has to stay
        before = word
        for spelled in _spelled(word):
            parts = list(_paths(spelled))
            found |= dict.fromkeys(parts)
            if folder:
                found |= dict.fromkeys(os.path.join(folder, part) for part in parts)  # noqa: PTH118 - as above
    return list(found)


def urls(words: Sequence[str]) -> list[str]:
    """Everything among the words of a command that is an address or a host, each once."""
    return list(dict.fromkeys([*_addresses(words), *_hosts(words)]))


def words(command: str | Sequence[str], depth: int = 0) -> Iterator[str]:
    """The words of a command, those of scripts and substitutions in it included."""
    own = _split(command) if isinstance(command, str) else list(command)
    yield from map(os.path.expandvars, own)
    if depth == DEEPEST:
        return
    for before, word in pairwise(own):
        if _SCRIPT.fullmatch(before) or before == "eval":
            yield ";"  # a command of its own begins
            yield from words(word, depth + 1)
    for match in _SUBSTITUTED.finditer(command if isinstance(command, str) else "\n".join(own)):
        yield ";"
        yield from words(match[1] or match[2] or "", depth + 1)


def _split(command: str) -> list[str]:
    # A line that goes on is one line, and `$'...'` quotes like `'...'` where no escape is in it.
    command = command.replace("\\\n", "").replace("$'", "'").replace('$"', '"')
    reader = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    reader.whitespace = " \t\r"
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        return list(reader)
    except ValueError:  # a quote that is never closed, as in many scripts that are no shell's
        return _ROUGHLY.findall(command)


def _spelled(word: str) -> Iterator[str]:
    """A word as a shell spells out its braces: `/{etc,usr}` is two."""
    pieces = _BRACES.split(word)
    choices = [piece.split(",") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    yield from ("".join(each) for each in islice(product(*choices), MOST_SPELLED))


def _paths(word: str) -> Iterator[str]:
    if not word or _BREAKS.fullmatch(word) or ("://" in word and not word.lower().startswith("file:")):
        return
    if word.startswith("-"):
        if rooted := _ROOTED.search(word):
            yield word[rooted.start() :]
    else:
        yield word
    if not any(map(str.isspace, word)):
        yield from (part for part in _PARTS.split(word)[0 if word[0] != "-" else 1 :] if part and part != word)


def _addresses(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        for match in _URL.finditer(word):
            if not match[0].lower().startswith("file:"):
                yield match[0]
        if (login := _LOGIN.match(word)) and "://" not in word:
            yield login["host"]


def _hosts(words: Sequence[str]) -> Iterator[str]:
    """Hosts without a scheme, which are plain words of programs that call them."""
    program = before = ""
    for word in words:
        if _BREAKS.fullmatch(word):
            program, before = ("" if _ENDS.fullmatch(word) else program), word
            continue
        if before and _REDIRECTS.fullmatch(before):
            before = ""  # a file, whatever it is called
            continue
        name = word.rpartition("/")[2]
        if not program or (program in WRAPPERS and (name in CALLERS or not _is_between(before, word))):
            program = "" if "=" in word and _SETS.fullmatch(word) else name
        elif program in CALLERS and not word.startswith("-") and before not in _NO_HOST_AFTER and "://" not in word:
            match = _HOST.fullmatch(word)
            if match and not _NUMBER.fullmatch(word):
                yield match["host"] + (match["port"] or "")
        before = word


def _is_between(before: str, word: str) -> bool:
    """Whether a word stands between a wrapper and its program: a variable, an option or what it is given, a time."""
    return before.startswith("-") or _SETS.fullmatch(word) is not None
