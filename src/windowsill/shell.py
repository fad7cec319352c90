"""Read shell commands: the files they read and write, and the paths and hosts they name.

Best effort, for honest mistakes and plain attempts: quotes, escapes, redirections, options, braces, variables of this
process, folders that are changed to, scripts after `-c` and `-e`, and substitutions are looked through. What a command
computes (`printf`, `base64`, a script it downloads) cannot be seen here.

`files_of`, `shows_files` and `without_trimming` serve summaries: they pass over the texts that a command only hands on.
`words_of` with `paths_in` and `hosts_in` serve policies: they look at every text, here-documents included, because it
may be run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, product

import msgspec

LONGEST_PATH = 400
LONGEST_LOOK = 4_000
"""Characters of a command that are looked at for a summary."""

MOST_WORDS = 120
"""Words of a command that are looked at for a summary: what follows is the text of a script."""

SHOWING = frozenset({
    "cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "grep", "rg", "egrep", "fgrep", "ag", "ls",
    "find", "fd", "tree", "wc", "diff", "stat", "file", "jq", "od", "xxd", "strings", "git", "gh", "type",
    "Get-Content", "cd", "echo", "true", "printf", "sort", "uniq", "cut", "pwd",
})  # fmt: skip
"""Programs that show what is stored: error words in their output belong to it."""

READING = frozenset({"cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "jq", "Get-Content", "type"})
WRITING = frozenset({"tee", "touch", "mv", "cp", "rm", "mkdir", "truncate", "install", "Set-Content"})

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
"""Words before a folder in which relative paths begin from there on."""

LONGEST_FOLDER = 1_024
"""Characters of a folder that is changed to, step by step: nobody works in longer ones."""

MOST_SPELLED = 64
"""Words that one word with braces is spelled out to."""

DEEPEST = 3
"""Scripts inside scripts that are looked at."""

_NO_HOST_AFTER = frozenset({
    "-o", "--output", "-O", "-T", "--upload-file", "-d", "--data", "--data-binary", "--data-raw", "-H", "--header",
    "-A", "-u", "--user", "-X", "--request", "-i", "-p", "-P", "-c", "-n", "-w", "-m", "-F", "-e", "-b", "-l",
})  # fmt: skip

# Words

_OPERATOR = r"(?:\d+(?=[<>]))?+[();<>|&\n]++"
_QUOTED = r"""'[^']*+'|"(?:[^"\\]|\\.)*+\""""
_TOKEN = re.compile(rf"({_OPERATOR})|((?:[^ \t\r\n'\"\\();<>|&]|\\.|{_QUOTED})++)|[ \t\r]++", re.DOTALL)
_QUOTES = re.compile(r"""\\(.)|'([^']*+)'|"((?:[^"\\]|\\.)*+)\"""", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\(["\\])')
_ROUGHLY = re.compile(r"[^\s;|&<>()'\"`]+|[;|&\n]+")
_ENDS = re.compile(r"[();|&\n]+")
_REDIRECTION = re.compile(r"\d*(?:<{1,2}|[<>]?>[>|]?|[<>]&|&>{1,2})")


class Operator(str):
    """A sign of the shell such as `;` or `>`; the same sign in quotes is a plain word."""

    __slots__ = ()


def split(command: str) -> list[str]:
    """Split a command into words, their quotes taken away, and operators such as `&&`, `;`, `>` and `2>`."""
    # A line that goes on is one line, and `$'...'` quotes like `'...'` where no escape is in it.
    command = command.replace("\\\n", "").replace("$'", "'").replace('$"', '"')
    tokens: list[str] = []
    end = 0
    for match in _TOKEN.finditer(command):
        if match.start() != end:
            break
        end = match.end()
        if match[1]:
            tokens.append(Operator(match[1]))
        elif match[2]:
            tokens.append(_QUOTES.sub(_unquoted, match[2]))
    if end == len(command):
        return tokens
    # A quote that is never closed, as in many scripts that are not a shell's.
    return _mark_operators(_ROUGHLY.findall(command))


def _mark_operators(words: Sequence[str]) -> list[str]:
    """Mark what ends a command among words that may come to a shell."""
    return [Operator(word) if _ENDS.fullmatch(word) else word for word in words]


def _redirects(word: str) -> bool:
    return isinstance(word, Operator) and _REDIRECTION.fullmatch(word) is not None


def _unquoted(match: re.Match[str]) -> str:
    escaped, single, double = match.groups()
    if double is not None:
        return _ESCAPED_IN_QUOTES.sub(r"\1", double)
    return escaped if escaped is not None else single


# Files that a command reads and writes, for summaries

_HEREDOC = re.compile(
    r"(<<-?[ \t]*+(['\"]?)(\w{1,60}+)\2[^\n]*+)\n.*?(?:^[ \t]*+\3[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)
_RUNS_SCRIPT = re.compile(r"-[le]?c")
_SED_RANGE = re.compile(r"^(\d{1,7}),(\d{1,7})p")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_CHANGES_IN_PLACE = frozenset({"-i", "--in-place", "-i.bak"})
_TRIMMING = re.compile(r"\s*(?:2>&1|2>/dev/null|\|\s*(?:tail|head)\s+-?(?:n\s*)?\d+|\|\|\s*true)\s*$")
_PATH = re.compile(r"(?:[\w.@~$-]*/)*[\w.@~-]*\.\w{1,10}|(?:[\w.@~$-]*/)+[\w.@~-]+")


class TouchedFile(msgspec.Struct, frozen=True):
    """A file that a command reads or writes."""

    path: str
    changed: bool
    range: tuple[int, int] = (1, 0)


def files_of(command: str) -> list[TouchedFile]:
    """Find the files a command reads or writes, as far as its words show it."""
    if patched := patched_files(command):
        return patched
    found: list[TouchedFile] = []
    for words, written in _simple_commands(command):
        found += [TouchedFile(path=path, changed=True) for path in written if looks_like_path(path)]
        program = words[0].rpartition("/")[2] if words else ""
        changes = program in WRITING or (program in ("sed", "perl") and not _CHANGES_IN_PLACE.isdisjoint(words))
        if not changes and program not in READING:
            continue
        lines = next((match for word in words if (match := _SED_RANGE.match(word))), None)
        shown = (int(lines[1]), int(lines[2])) if lines else (1, 0)
        paths = [word for word in words[1:] if looks_like_path(word) and word[0] != "-"]
        found += [TouchedFile(path=path, changed=changes, range=shown) for path in paths]
    return list(dict.fromkeys(found))


def patched_files(text: str) -> list[TouchedFile]:
    """Find the files a patch changes: `*** Update File:` lines or the headers of a unified diff."""
    if "*** " not in text and "+++ " not in text:
        return []
    names = [(match[2] or match[3]).strip() for match in _PATCHED.finditer(text)]
    found = (name for name in dict.fromkeys(names) if name != "/dev/null" and len(name) <= LONGEST_PATH)
    return [TouchedFile(path=name, changed=True) for name in found]


def looks_like_path(text: str) -> bool:
    """Tell whether a word reads like a file's name."""
    return 1 < len(text) <= LONGEST_PATH and _PATH.fullmatch(text) is not None and any(map(str.isalpha, text))


def shows_files(command: str) -> bool:
    """Tell whether a command only shows what is stored."""
    programs = [words[0].rpartition("/")[2] for words, _ in _simple_commands(command) if words]
    return all(program in SHOWING for program in programs)


def without_trimming(command: str) -> str:
    """Drop what only trims or redirects the output: two runs that are the same then are one and the same."""
    text = command.strip()
    while (shorter := _TRIMMING.sub("", text)) != text:
        text = shorter
    return text


def _simple_commands(command: str, depth: int = 0) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words of each simple command and the targets of its `>` and `>>`; texts it hands on are skipped."""
    words: list[str] = []
    written: list[str] = []
    tokens = iter(split(_HEREDOC.sub(r"\1", command[:LONGEST_LOOK])))
    for token in tokens:
        if _redirects(token):
            target = next(tokens, "")
            if token in (">", ">>") and not target.startswith("/dev/"):
                written.append(target)
        elif isinstance(token, Operator):
            yield words, written
            words, written = [], []
        elif len(words) < MOST_WORDS:
            runs = len(words) > 1 and words[-2].endswith("sh") and _RUNS_SCRIPT.fullmatch(words[-1])
            if runs and depth < DEEPEST:
                yield from _simple_commands(token, depth + 1)
            words.append(token)
    yield words, written


# Paths and hosts that a command names, for policies

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}+://\S+")
"""An address; the length of its scheme is bounded, or a long word would be looked through from each of its letters."""

_LOGIN = re.compile(r"(?:[\w.-]+@)(?P<host>[\w.-]+)(?::|$)")
_HOST = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w-]+(?:\.[\w-]+)+|localhost|\[[0-9a-fA-F:]+\])(?P<port>:\d+)?(?:[:/].*)?")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_SETS = re.compile(r"\w+=.*|-.*|\d+[smhd]?", re.DOTALL)
_BRACES = re.compile(r"\{([^{}\s,]*(?:,[^{}\s,]*)+)\}")
_PARTS = re.compile(r"[=:,@]")
_ROOTED = re.compile(r"[/~]|\.\.")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c|-[a-z]{0,2}e|--eval|--command")


def words_of(command: str | Sequence[str], depth: int = 0) -> Iterator[str]:
    """Yield the words of a command, those of scripts and substitutions in it included."""
    own = split(command) if isinstance(command, str) else _mark_operators(command)
    yield from (expand_variables(word) for word in own)
    if depth == DEEPEST:
        return
    for before, word in pairwise(own):
        if _SCRIPT_OPTION.fullmatch(before) or before == "eval":
            yield Operator(";")  # a command of its own begins
            yield from words_of(word, depth + 1)
    for match in _SUBSTITUTED.finditer(command if isinstance(command, str) else "\n".join(own)):
        yield Operator(";")
        yield from words_of(match[1] or match[2] or "", depth + 1)


def expand_variables(text: str) -> str:
    """Put the values of this process's variables in their places, in linear time, unlike `os.path.expandvars`."""
    if isinstance(text, Operator):
        return text
    return _VARIABLE.sub(lambda match: os.environ.get(match[1] or match[2], match[0]), text)


def paths_in(words: Iterable[str]) -> list[str]:
    """Return every word that may be a path, each once, in whichever folder the command may run by then."""
    found: dict[str, None] = {}
    folder = before = ""
    for word in words:
        if before in MOVERS and not word.startswith("-"):
            folder = os.path.join(folder, word)[:LONGEST_FOLDER]  # noqa: PTH118 - `..` has to stay
        before = word
        for spelled in () if isinstance(word, Operator) else _spell_braces(word):
            parts = list(_paths_in_word(spelled))
            found |= dict.fromkeys(parts)
            if folder:
                found |= dict.fromkeys(os.path.join(folder, part) for part in parts)  # noqa: PTH118 - as above
    return list(found)


def hosts_in(words: Sequence[str]) -> list[str]:
    """Return every word that is an address or a host, each once."""
    return list(dict.fromkeys([*_addresses(words), *_bare_hosts(words)]))


def _spell_braces(word: str) -> Iterator[str]:
    """Spell out braces as a shell does: `/{etc,usr}` is two words."""
    pieces = _BRACES.split(word)
    choices = [piece.split(",") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    yield from ("".join(each) for each in islice(product(*choices), MOST_SPELLED))


def _paths_in_word(word: str) -> Iterator[str]:
    if not word or ("://" in word and not word.lower().startswith("file:")):
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
        for match in _URL.finditer(word) if "://" in word else ():
            if not match[0].lower().startswith("file:"):
                yield match[0]
        if (login := _LOGIN.match(word)) and "://" not in word:
            yield login["host"]


def _bare_hosts(words: Sequence[str]) -> Iterator[str]:
    """Yield hosts without a scheme, which are plain words of programs that call them."""
    program = before = ""
    for word in words:
        if isinstance(word, Operator):
            program, before = (program if _redirects(word) else ""), word
            continue
        if _redirects(before):
            before = ""  # a file, whatever it is called
            continue
        name = word.rpartition("/")[2]
        # Between a wrapper and its program stand variables, options with their values, and times.
        between = before.startswith("-") or _SETS.fullmatch(word) is not None
        if not program or (program in WRAPPERS and (name in CALLERS or not between)):
            program = "" if "=" in word and _SETS.fullmatch(word) else name
        elif program in CALLERS and not word.startswith("-") and before not in _NO_HOST_AFTER and "://" not in word:
            match = _HOST.fullmatch(word)
            if match and not _NUMBER.fullmatch(word):
                yield match["host"] + (match["port"] or "")
        before = word
