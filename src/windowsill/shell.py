"""Read shell commands: the files they read and write, and the paths and hosts they name.

Best effort, for honest mistakes and plain attempts: quotes, escapes, comments, redirections, options, braces, variables
of the command and of this process, folders that are changed to, scripts that are handed to an interpreter, and
substitutions are looked through, and a program that goes through a folder takes what lies below it. What a command
computes (`base64`, a script it downloads) or reads from a file cannot be seen here; that a file names hosts can.

`files_of`, `shows_files` and `without_trimming` serve summaries: they pass over the texts that a command only hands on.
`words_of` with `paths_in` and `hosts_in` serve policies: they look at every text, here-documents included, because it
may be run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile

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
    "aria2c", "lynx", "links", "w3m", "dig", "nslookup", "host", "whois", "traceroute", "mtr",
})  # fmt: skip
"""Programs whose plain words are hosts."""

WRAPPERS = frozenset({
    "sudo", "doas", "env", "command", "exec", "nohup", "nice", "time", "timeout", "xargs", "stdbuf", "setsid", "watch",
    "busybox",
    "if", "then", "elif", "else", "while", "until", "do", "!", "{",
})  # fmt: skip
"""Programs that run the program behind them, and words of the shell that a command follows."""

MOVERS = frozenset({"cd", "pushd", "-C", "--directory", "--chdir"})
"""Words before a folder in which relative paths begin from there on; the options may have it attached."""

INTERPRETERS = frozenset({
    "sh", "bash", "zsh", "dash", "ksh", "fish", "eval", "source", "xargs", "python", "python3", "perl", "ruby", "node",
    "php", "awk", "gawk", "mawk", "sed", "lua",
})  # fmt: skip
"""Programs that run a text, from an argument or their input: texts of a command with one may be scripts."""

LONGEST_FOLDER = 1_024
"""Characters of a folder that is changed to, step by step: nobody works in longer ones."""

MOST_SPELLED = 64
"""Words that one word with braces is spelled out to."""

DEEPEST = 3
"""Scripts inside scripts that are looked at."""

_VALUES = {
    "curl": "AbcCdDeEFhHKmoPQrtTuUwXyYz",
    "wget": "oaeiBtOTwQPUlARDIX",
    "ssh": "bcDEeFIiJLlmOopQRSWw",
    "scp": "cFiJloPS",
    "nc": "egipswqXOITP",
    "ping": "ciIstwWmMpQSl",
    "rsync": "efBTM",
}
"""The short options of programs that take a value which is no host; of other callers none is known."""

_NO_HOST_AFTER = frozenset({
    "--output", "--upload-file", "--data", "--data-binary", "--data-raw", "--data-urlencode", "--header", "--user",
    "--request", "--cacert", "--capath", "--cert", "--key", "--config", "--cookie", "--cookie-jar", "--output-dir",
    "--referer", "--user-agent", "--form", "--interface", "--netrc-file", "--dump-header", "--write-out", "--range",
    "--output-document", "--input-file", "--directory-prefix", "--max-time", "--connect-timeout", "--retry",
})  # fmt: skip
_HOST_OPTIONS = frozenset({"-x", "--proxy", "--preproxy", "--url", "--resolve", "--connect-to", "-connect"})
"""Options whose value is a host, or several with colons between them."""

_LISTS = {"curl": ("-K", "--config"), "wget": ("-i", "--input-file"), "aria2c": ("-i", "--input-file")}
"""Options before a file with addresses, which are not among those allowed as nobody sees them."""

_REMOTES = {
    "git": frozenset({"clone", "push", "pull", "fetch", "ls-remote", "add", "set-url"}),
    "docker": frozenset({"pull", "push", "run", "create"}),
    "podman": frozenset({"pull", "push", "run", "create"}),
}
"""Commands of programs before an address, which is `host:path` for git and `host/image` for the others."""

_PATTERN_FIRST, _TARGET_LAST, _ALL = slice(1, None), slice(-1), slice(None)
_WALKERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), ("rR", _PATTERN_FIRST)),
    **dict.fromkeys(("chmod", "chown"), ("R", _PATTERN_FIRST)),
    **dict.fromkeys(("rg", "ag"), ("", _PATTERN_FIRST)),
    **dict.fromkeys(("cp", "scp", "rsync"), ("rRa", _TARGET_LAST)),
    **dict.fromkeys(("mv", "ln"), ("", _TARGET_LAST)),
    **dict.fromkeys(("rm", "zip", "diff"), ("rR", _ALL)),
    **dict.fromkeys(("tar", "find"), ("", _ALL)),
}
"""Programs that take what lies below a folder, with one of these short options or always, and which words those are."""

_WALKS = frozenset({"--recursive", "--dereference-recursive", "--archive"})
_NAMES = frozenset({"--include", "-g", "--glob", "-name"})
"""Options before the names of the only files that are taken."""
_NEGATES = re.compile(r"!|-not$|-iname$")
_ACTS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "xargs", "read", "$"})
"""Words with which `find` does more than list names; a bare `$` is what is left of a substitution."""

# Words

_OPERATOR = r"(?:\d+(?=[<>]))?+[();<>|&\n]++"
_QUOTED = r"""\$'(?:[^'\\]|\\.)*+'|'[^']*+'|"(?:[^"\\]|\\.)*+\""""
_TOKEN = re.compile(
    rf"({_OPERATOR})|(?:(?<![^\s();<>|&])#[^\n]*+)|((?:{_QUOTED}|[^ \t\r\n'\"\\();<>|&]|\\.)++)|[ \t\r]++", re.DOTALL
)
_QUOTES = re.compile(r"""\\(.)|\$'((?:[^'\\]|\\.)*+)'|\$?'([^']*+)'|\$?"((?:[^"\\]|\\.)*+)\"""", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\(["\\])')
_ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_ROUGHLY = re.compile(r"[^\s;|&<>()'\"`]+|[;|&\n]+")
_ENDS = re.compile(r"[();|&\n]+")
_REDIRECTION = re.compile(r"\d*(?:<{1,3}|<>|[<>]?>[>|]?|[<>]&|&>{1,2})")


class Operator(str):
    """A sign of the shell such as `;` or `>`; the same sign in quotes is a plain word."""

    __slots__ = ()


def split(command: str) -> list[str]:
    """Split a command into words, their quotes taken away, and operators such as `&&`, `;`, `>` and `2>`."""
    command = command.replace("\\\n", "")  # a line that goes on is one line
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
    # A quote that is never closed, as in many scripts that are not a shell's: both readings count.
    return [*tokens, Operator(";"), *_mark_operators(_ROUGHLY.findall(command))]


def _mark_operators(words: Sequence[str]) -> list[str]:
    """Mark what ends a command among words that may come to a shell."""
    return [Operator(word) if _ENDS.fullmatch(word) else word for word in words]


def _redirects(word: str) -> bool:
    return isinstance(word, Operator) and _REDIRECTION.fullmatch(word) is not None


def _unquoted(match: re.Match[str]) -> str:
    escaped, ansi, single, double = match.groups()
    if double is not None:
        return _ESCAPED_IN_QUOTES.sub(r"\1", double)
    if ansi is not None:
        return _ANSI.sub(_unescaped, ansi)
    return escaped if escaped is not None else single


def _unescaped(match: re.Match[str]) -> str:
    byte, character, octal, other = match.groups()
    if other is not None:
        return {"n": "\n", "t": "\t", "r": "\r"}.get(other, other)
    return chr(int(octal, 8) & 0xFF if octal else int(byte or character, 16))


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

_VARIABLE = re.compile(r"\$(?:(\w+|[@*])|\{(\w+(?:\[[\w@*]+\])?)(?::?[-=+]([^{}]*))?\}|\{(PWD%/\*)\}|\(\(\d*\)\))")
_BLANK = re.compile(r"\$(?:IFS\b|\{IFS\})")
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_EXTENDED = re.compile(r"[@?*+!]\([^()]*\)")
_HERE = {"PWD": ".", "PWD%/*": "..", "OLDPWD": "~-"}
"""Folders that a command names as seen from where it runs, which is not where this process runs."""
_MAYBE_UNSET = re.compile(r"\$\{?(\w+(?:\[\w+\])?)\}?")
_PLAIN = re.compile(r"[^\s'\"`();<>|&]+")
_JOINED = re.compile(r"""(['"])[^'"\n]*+\1(?:\s*+\)?+\s*+(?:[,/+]|\.joinpath\()\s*+(['"])[^'"\n]*+\2){1,8}""")
"""Strings in code that are handed on together or put together, as the parts of a path are."""
_LITERAL = re.compile(r"""(['"])([^'"\n]*+)\1""")
_CONNECTED = re.compile(
    r"""(?:connect|socket|dial)\w{0,20}+\W{1,3}['"]([\w.-]+)['"]\s*,\s*['"]?(\d{2,5})\b""", re.IGNORECASE
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}+://\S+")
"""An address; the length of its scheme is bounded, or a long word would be looked through from each of its letters."""

_LOGIN = re.compile(r"(?:[\w.-]+@)(?P<host>[\w.-]+)(?::|$)")
_HOST = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w-]+(?:\.[\w-]+)+|localhost|\[[0-9a-fA-F:]+\])(?P<port>:\d+)?(?:[:/].*)?")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_SETS = re.compile(r"\w+=.*|-.*|\d+[smhd]?", re.DOTALL)
_BRACES = re.compile(r"\{([^{}\s,]*(?:,[^{}\s,]*)+)\}")
_SEQUENCE = re.compile(r"\{(\w)\.\.(\w)\}")
_DEVICE = re.compile(
    r"/dev/(?:tcp|udp)/([^/\s]+)|\b(?:tcp|udp|ssl|openssl)[46]?(?:-connect)?:([\w.-]+):\d", re.IGNORECASE
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w-]+(?:\.[\w-]+)+):(?!//)")
_IMAGE = re.compile(r"(?P<host>(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?|[\w-]+(?:\.[\w-]+)*:\d+)/")
_WHOLE = re.compile(r"(?P<host>0x[0-9a-fA-F]{8}|\d{8,10}|[A-Za-z][\w-]*)(?P<port>:\d+)?(?:/.*)?", re.DOTALL)
_SCRIPT = re.compile(r"[\s'\"();]")
_PARTS = re.compile(r"[=:,@]")
_ROOTED = re.compile(r"[/~]|\.\.")
_SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c|-[a-z]{0,2}e|--eval|--command")


def words_of(command: str | Sequence[str], depth: int = 0, variables: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the words of a command, those of scripts and substitutions in it included."""
    known = {} if variables is None else variables
    text = command if isinstance(command, str) else "\n".join(command)
    computed = _BLANK.sub(" ", text)
    for _ in range(DEEPEST):
        computed = _SUBSTITUTED.sub(_computed, computed)
    own = split(computed) if isinstance(command, str) else _mark_operators(command)
    known |= _parameters(own)
    own = list(_expanded(own, known))
    yield from own
    yield from _handed_on(own)
    if depth == 0:
        yield from _put_together(text)
    if depth == DEEPEST:
        return
    interprets = any(word.rpartition("/")[2] in INTERPRETERS for word in own)
    for before, word in pairwise([Operator(";"), *own]):
        script = _SCRIPT_OPTION.fullmatch(before) or before == "eval" or (interprets and _SCRIPT.search(word))
        if script and not isinstance(word, Operator):
            yield Operator(";")  # a command of its own begins
            yield from words_of(word, depth + 1, known)
    for match in _SUBSTITUTED.finditer(text):
        yield Operator(";")
        yield from words_of(match[1] or match[2] or "", depth + 1, known)
    if isinstance(command, str) and _EXTENDED.search(command):
        yield Operator(";")
        yield from words_of(_EXTENDED.sub("*", command), DEEPEST, known)


def _computed(match: re.Match[str]) -> str:
    """Return the text of a substitution that only writes its words, or a folder above them; any other stays."""
    program, *given = split(match[1] or match[2] or "") or [""]
    given = [word for word in given if not word.startswith("-")]
    text = ""
    if program == "pwd":
        text = "."
    elif program == "dirname" and given:
        text = _MAYBE_UNSET.sub(r"${\1:-./_}", given[-1]) + "/.."  # that of nothing is this folder
    elif program == "printf" and given:
        values = iter(given[1:])
        text = re.sub("%s", lambda _: next(values, ""), given[0])
    elif program in ("echo", "realpath", "readlink"):
        text = " ".join(given)
    return text if _PLAIN.fullmatch(text) else match[0]


def _parameters(words: Sequence[str]) -> dict[str, str]:
    """Return what `$1` and the like may stand for: the words that functions of the command are called with."""
    names = {name for name, sign in pairwise(words) if isinstance(sign, Operator) and sign.startswith("()")} | {"set"}
    names |= {name for word, name in pairwise(words) if word == "function"}
    given: dict[str, list[str]] = {}
    place = 0
    for word in words:
        if isinstance(word, Operator) or word == "{":
            place = 0
        elif place and word != "--":
            given.setdefault(str(place), []).append(word)
            place += 1
        elif word in names:
            place = 1
    return {name: _choice(values) for name, values in given.items()}


def _choice(values: Sequence[str]) -> str:
    """Write values as one word with braces."""
    return values[0] if len(values) == 1 else f"{{{','.join(values[:MOST_SPELLED])[:LONGEST_FOLDER]}}}"


def _handed_on(words: Iterable[str]) -> Iterator[str]:
    """Yield the commands that `xargs` makes of what `echo` writes."""
    for before, after in pairwise(_commands(words)):
        if before[0] in ("echo", "printf") and after[0] == "xargs":
            yield Operator(";")
            yield from (word.replace("{}", before[-1][:LONGEST_FOLDER]) for word in after)
            yield from before[1:]


def _put_together(code: str) -> Iterator[str]:
    """Yield the paths whose parts stand side by side in code, and the hosts that it connects to."""
    code = code.replace("\\", "")
    for match in _JOINED.finditer(code):
        parts = [part for _, part in _LITERAL.findall(match[0])]
        yield from (Operator(";"), "/".join(parts), Operator(";"), "".join(parts))
    for host, port in _CONNECTED.findall(code):
        yield from (Operator(";"), f"tcp:{host}:{port}")


def _commands(words: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each simple command, without where its output goes."""
    command: list[str] = []
    before = ""
    for word in (*words, Operator(";")):
        if not isinstance(word, Operator):
            command += [] if _redirects(before) else [word]
        elif command and not _redirects(word):
            yield command
            command = []
        before = word


def _expanded(words: Iterable[str], known: dict[str, str]) -> Iterator[str]:
    """Yield words with the values of variables, which the command itself may set as it goes."""
    loop: list[str] = []
    spelled = ""
    for word in words:
        if isinstance(word, Operator):
            if values := loop[3:]:  # behind `for NAME in`
                known[loop[1]] = known[f"{loop[1]}[@]"] = _choice(values)
                known.update((f"{loop[1]}[{place}]", value) for place, value in enumerate(values))
            # `NAME=(` begins a list, which goes on like a loop.
            loop = ["for", spelled[:-1], "in"] if word.startswith("(") and spelled.endswith("=") else []
            spelled = ""
            yield word
            continue
        spelled = expand_variables(word, known)
        if spelled.startswith("~/") and "HOME" in known:
            spelled = known["HOME"] + spelled[1:]
        elif spelled.startswith("~+"):
            spelled = "." + spelled[2:]
        if assigned := _ASSIGNS.fullmatch(spelled):
            start = known.get(assigned[1], "") if assigned[2] else ""
            known[assigned[1]] = (start + assigned[3])[:LONGEST_FOLDER]
        if loop or word == "for":
            loop.append(spelled)
        yield spelled


def expand_variables(text: str, known: Mapping[str, str] | None = None) -> str:
    """Put the values of variables in their places, as a shell does, in linear time; one that is not set is empty."""
    if "$" not in text:
        return text
    sources = (known or {}, _HERE, os.environ)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[4] or ""
        return next((each[name] for each in sources if each.get(name)), match[3] or "")

    return _VARIABLE.sub(value, text)


def paths_in(words: Iterable[str]) -> list[str]:
    """Return every word that may be a path, each once, in whichever folder the command may run by then."""
    found: dict[str, None] = {}
    folder, left, moves = "", "", False
    command: list[str] = []
    words = [*words, Operator(";")]
    acts = not _ACTS.isdisjoint(words)
    for before, each in pairwise([Operator(";"), *words]):
        # `-` behind `cd`, and `~-` anywhere, is the folder that was left.
        back = (moves and each == "-") or each.startswith("~-")
        word = os.path.join(left, "." + each[2:]) if back else each  # noqa: PTH118 - `..` has to stay
        attached = word.partition("=")[2] if word.startswith(("--chdir=", "--directory=")) else ""
        attached = attached or (word[2:] if word.startswith("-C") else "")
        if attached or (moves and not word.startswith("-") and not isinstance(word, Operator)):
            left, folder = folder, word if back else _enter(folder, attached or word)
        elif not isinstance(word, Operator):
            command += [] if _redirects(before) else [word]
        elif not _redirects(word):
            walked = _walked(command, acts=acts)
            found |= dict.fromkeys(os.path.join(folder, path) for path in walked)  # noqa: PTH118 - as above
            command = []
        moves = word in MOVERS or (moves and word.startswith("-"))
        for spelled in () if isinstance(word, Operator) else _spell_braces(word):
            parts = list(_paths_in_word(spelled))
            found |= dict.fromkeys(parts)
            if folder:
                found |= dict.fromkeys(os.path.join(folder, part) for part in parts)  # noqa: PTH118 - `..` has to stay
    return list(found)


def _walked(command: Sequence[str], *, acts: bool) -> list[str]:
    """Return patterns for the files of a command that takes what lies below a folder."""
    words = list(dropwhile(lambda word: word in WRAPPERS or _SETS.fullmatch(word), command))
    program = words[0].rpartition("/")[2] if words else ""
    letters, places = _WALKERS.get(program, ("", None))
    walks = not letters or any(word in _WALKS or _has_option(word, letters) for word in words)
    if places is None or not walks or (program == "find" and not acts):
        return []
    options = [word.partition("=")[::2] for word in words]
    named = [
        value or after for (option, value), after in zip(options, [*words[1:], ""], strict=True) if option in _NAMES
    ]
    narrowed = 0 < len(named) <= MOST_SPELLED and not any(map(_NEGATES.match, [*words, *named]))
    below = [f"**/{name}" for name in named] if narrowed else ["**"]
    if program == "find":
        words = [program, *takewhile(lambda word: not word.startswith("-"), words[1:])]
    plain = [word for word in words[1:] if word and not word.startswith("-") and not _NUMBER.fullmatch(word)]
    if len(plain) == 1:  # a link is made here, and a search begins here
        plain = ["."] * 2 if program.endswith("grep") else [*plain, "."] if program == "ln" else plain
    return [f"{path}/{each}" for word in plain[places] for path in _spell_braces(word) for each in below]


def _has_option(word: str, letters: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and not set(letters).isdisjoint(word)


def _enter(folder: str, into: str) -> str:
    path = os.path.join(folder, into)  # noqa: PTH118 - `..` has to stay, as links are followed first
    return path if len(path) <= LONGEST_FOLDER else os.path.normpath(path)[:LONGEST_FOLDER]


def hosts_in(words: Sequence[str]) -> list[str]:
    """Return every word that is an address or a host, each once."""
    words = [each for word in words for each in ([word] if isinstance(word, Operator) else _spell_braces(word))]
    return list(dict.fromkeys([*_addresses(words), *_bare_hosts(words)]))


def _spell_braces(word: str) -> Iterator[str]:
    """Spell out braces as a shell does: `/{etc,usr}` is two words."""
    if "{" not in word:
        yield word
        return
    waiting = [_SEQUENCE.sub(_choices, word)]
    for _ in range(MOST_SPELLED):  # each round doubles them, or spells out a whole word
        inner = [_BRACES.search(each) for each in waiting]
        if not any(inner) or len(waiting) >= MOST_SPELLED:
            break
        waiting = [
            f"{each[: match.start()]}{choice}{each[match.end() :]}" if match else each
            for each, match in zip(waiting, inner, strict=True)
            for choice in (match[1].split(",")[:MOST_SPELLED] if match else ("",))
        ]
    yield from waiting[:MOST_SPELLED]


def _choices(match: re.Match[str]) -> str:
    """Write a sequence such as `{a..c}` as a choice."""
    low, high = sorted((ord(match[1]), ord(match[2])))
    letters = [chr(each) for each in range(low, min(high, low + MOST_SPELLED) + 1)]
    return letters[0] if len(letters) == 1 else f"{{{','.join(letters)}}}"


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
        yield from (match[1] or match[2] for match in _DEVICE.finditer(word))


def _bare_hosts(words: Sequence[str]) -> Iterator[str]:
    """Yield hosts without a scheme, which are plain words of programs that call them."""
    program = before = ""
    remote = fed = False
    for word in (*words, Operator(";")):
        if isinstance(word, Operator):
            if fed and not _redirects(word):
                yield f"{program} of what it reads"  # no clear address, so it is not among those allowed
                fed = False
            program, before, remote = (program if _redirects(word) else ""), word, False
            continue
        if _redirects(before):
            before = ""  # a file, whatever it is called
            continue
        name = word.rpartition("/")[2]
        # Between a wrapper and its program stand variables, options with their values, and times.
        between = before.startswith("-") or _SETS.fullmatch(word) is not None
        if not program or (program in WRAPPERS and (name in CALLERS or not between)):
            fed = fed or (program == "xargs" and name in CALLERS)
            program = "" if "=" in word and _SETS.fullmatch(word) else name
        elif program in _REMOTES:
            remote = remote or word in _REMOTES[program]
            if remote and (match := (_REMOTE if program == "git" else _IMAGE).match(word)):
                yield match["host"]
        elif program in CALLERS or before == "-connect":
            found = list(_named_hosts(program, before, word))
            fed = fed and not found and "://" not in word
            yield from found
        before = word


def _named_hosts(program: str, before: str, word: str) -> Iterator[str]:
    """Yield the hosts of one word behind a program that calls hosts."""
    option, _, attached = word.partition("=")
    if option in _LISTS.get(program, ()):
        yield f"{program} {option} of a file"  # no clear address
    if word.startswith("-x") and program == "curl":
        option, attached = "-x", word[2:]
    if option in _HOST_OPTIONS or before in _HOST_OPTIONS:
        value = attached if option in _HOST_OPTIONS else word
        several = "resolve" in before + option or "connect-to" in before + option
        pieces = value.split(":") if several else [value]
        yield from (match["host"] for piece in pieces if (match := _HOST.fullmatch(piece)) and "://" not in piece)
        return
    if word.startswith("-") or "://" in word or before in _NO_HOST_AFTER or _awaits_value(program, before):
        return
    if program in ("scp", "rsync"):
        # A host has a colon behind it; everything else is a file.
        host, colon, _ = word.partition(":")
        match = (_HOST.fullmatch(host) or _WHOLE.fullmatch(host)) if colon else None
    else:
        match = None if _NUMBER.fullmatch(word) else _HOST.fullmatch(word)
        alone = program in ("curl", "wget") and not before.startswith("--")
        if match is None and (alone or before.rpartition("/")[2] == "ssh"):
            match = _WHOLE.fullmatch(word)  # a number, or a name without a dot
    if match is not None:
        yield match["host"] + (match["port"] or "")


def _awaits_value(program: str, option: str) -> bool:
    """Tell whether the last of some short options takes the next word as its value."""
    if not option.startswith("-") or option.startswith("--") or len(option) == 1:
        return False
    takes = _VALUES.get(program, "")
    first = next((place for place, letter in enumerate(option[1:], 1) if letter in takes), None)
    return first == len(option) - 1
