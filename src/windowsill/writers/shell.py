"""Shell commands: which files they read and write, and what makes two of them the same."""

from __future__ import annotations

import re

import msgspec

LONGEST_PATH = 400
LONGEST_LOOK = 4_000
"""Characters of a command that are looked at."""

MOST_WORDS = 120
"""Words of a command that are looked at: what follows is the text of a script."""

SHOWING = frozenset({
    "cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "grep", "rg", "egrep", "fgrep", "ag", "ls",
    "find", "fd", "tree", "wc", "diff", "stat", "file", "jq", "od", "xxd", "strings", "git", "gh", "type",
    "Get-Content", "cd", "echo", "true", "printf", "sort", "uniq", "cut", "pwd",
})  # fmt: skip
"""Programs that show what is stored: error words in their output belong to it."""

READING = frozenset({"cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "jq", "Get-Content", "type"})
WRITING = frozenset({"tee", "touch", "mv", "cp", "rm", "mkdir", "truncate", "install", "Set-Content"})

_PIECES = re.compile(r"&&|\|\||[;|\n]")
_TOKEN = re.compile(r""""[^"\n]{0,400}"|'[^'\n]{0,400}'|[^\s"']+""")
_REDIRECT = re.compile(r"(?<![\d&<>])>>?\s*(\"[^\"\n]+\"|'[^'\n]+'|[^\s;|&<>()]+)")
_HEREDOC = re.compile(
    r"(<<-?[ \t]*+(['\"]?)(\w{1,60}+)\2[^\n]*+)\n.*?(?:^[ \t]*+\3[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED = re.compile(r"(>[ \t]*+)?(\"[^\"]*+\"|'[^']*+')")
_SIGNS = re.compile(r"[>;|&\n]")
_SCRIPTED = ("sh -c", "sh -lc", "sh -ec")
"""What stands before a quoted script that is run."""

_SED_RANGE = re.compile(r"^['\"]?(\d{1,7}),(\d{1,7})p")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_CHANGING_FLAG = frozenset({"-i", "--in-place", "-i.bak"})
_TAIL = re.compile(r"\s*(?:2>&1|2>/dev/null|\|\s*(?:tail|head)\s+-?(?:n\s*)?\d+|\|\|\s*true)\s*$")
_PATH = re.compile(r"(?:[\w.@~$-]*/)*[\w.@~-]*\.\w{1,10}|(?:[\w.@~$-]*/)+[\w.@~-]+")


class Touched(msgspec.Struct, frozen=True):
    """A file a command reads or writes."""

    path: str
    changed: bool
    range: tuple[int, int] = (1, 0)


def looks_like_path(text: str) -> bool:
    """Whether an argument reads like a file's name."""
    return 1 < len(text) <= LONGEST_PATH and _PATH.fullmatch(text) is not None and any(map(str.isalpha, text))


def core(command: str) -> str:
    """A command without what only trims or redirects its output: two runs with the same core are one and the same."""
    text = command.strip()
    while (shorter := _TAIL.sub("", text)) != text:
        text = shorter
    return text


def shows_files(command: str) -> bool:
    """Whether a command only shows what is stored."""
    pieces = [piece.split() for piece in _PIECES.split(_spoken(command))]
    return all(words[0].rpartition("/")[2] in SHOWING for words in pieces if words)


def _spoken(command: str) -> str:
    """A command as far as it is looked at, without the texts it hands on: what stands in them is not run."""
    return _QUOTED.sub(_without_signs, _HEREDOC.sub(r"\1", command[:LONGEST_LOOK]))


def _without_signs(quoted: re.Match[str]) -> str:
    """A quoted text, unless it holds signs that would read like the shell's own."""
    if quoted[1] or not _SIGNS.search(quoted[2]):
        return quoted[0]
    before = quoted.string[max(0, quoted.start() - 20) : quoted.start()].rstrip()
    return f"\n{quoted[2][1:-1]}" if before.endswith(_SCRIPTED) else "''"


def touched(command: str) -> list[Touched]:
    """The files a command reads or writes, as far as its words show it."""
    if patched := patched_files(command):
        return patched
    found: list[Touched] = []
    for piece in _PIECES.split(_spoken(command)):
        words = _TOKEN.findall(_REDIRECT.sub("", piece))[:MOST_WORDS]
        if not words:
            continue
        targets = [target.strip("\"'") for target in _REDIRECT.findall(piece)]
        found += [Touched(path=path, changed=True) for path in targets if looks_like_path(path) and path[:5] != "/dev/"]
        program = words[0].rpartition("/")[2]
        changes = program in WRITING or (program in ("sed", "perl") and not _CHANGING_FLAG.isdisjoint(words))
        if not changes and program not in READING:
            continue
        lines = next((match for word in words if (match := _SED_RANGE.match(word))), None)
        shown = (int(lines[1]), int(lines[2])) if lines else (1, 0)
        paths = [path for word in words[1:] if looks_like_path(path := word.strip("\"'")) and word[0] != "-"]
        found.extend(Touched(path=path, changed=changes, range=shown) for path in paths)
    return list(dict.fromkeys(found))


def patched_files(text: str) -> list[Touched]:
    """The files a patch changes: `*** Update File:` lines or the headers of a unified diff."""
    if "*** " not in text and "+++ " not in text:
        return []
    names = [(match[2] or match[3]).strip() for match in _PATCHED.finditer(text)]
    found = (name for name in dict.fromkeys(names) if name != "/dev/null" and len(name) <= LONGEST_PATH)
    return [Touched(path=name, changed=True) for name in found]
