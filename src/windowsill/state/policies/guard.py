"""Judge a call after the projection let it through: limits, paths, hosts, sizes, policies and approvals.

The paths and addresses that a call names are found among its arguments and in its commands. A tool may declare which of
its parameters are paths, URLs and commands; then these are what counts. For other tools the format and the name of a
parameter, its description, the name of the tool and the looks of a value tell.
"""

from __future__ import annotations

import copy
import ipaddress
import math
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from windowsill import shell, user_function
from windowsill.errors import InputError
from windowsill.secrets import Redactor
from windowsill.state.layers import Constraints, Resources, State, System, TaskLimits
from windowsill.state.policies.paths import LONGEST_PATH, ForbiddenPaths
from windowsill.state.tools.argument_checks import Refusal, list_names, quote, resolve
from windowsill.state.tools.projection import UNSTATED, ToolOffer, category_of, first_word
from windowsill.tool_arguments import KIND_OF_WORD

LONGEST_HOST = 253
"""Characters of a name in the domain name system."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ODD = re.compile(r"[\s\\\x00-\x1f\x7f]")
"""Signs that clients read differently: some take a backslash for a slash, some drop tabs and line breaks."""

_TWO_READINGS = re.compile("[\u00df\u03c2\u200c\u200d]")
"""Letters that older clients replace by others, as sharp s by a double s, and newer ones keep."""

_NUMBERS = re.compile(r"(0x[0-9a-f]+|\d+)(\.(0x[0-9a-f]+|\d+))*")
"""Hosts that clients read as numbers, in whatever base."""


class UnclearError(Exception):
    """An address of which clients may read different hosts."""


class _Place(NamedTuple):
    host: str
    port: int | None


class Hosts:
    """The only hosts that may be reached: each with its subdomains; `*.example.com` is the subdomains alone."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._stated = tuple(allowed)
        self._allowed = [_read_entry(each) for each in self._stated]

    def beyond(self, url: str) -> str | None:
        """Return why an address may not be reached; `None` when it may. Without a scheme it begins with the host."""
        try:
            place = _read(url)
        except UnclearError as error:
            return f"{quote(url)} is not a clear address: {error}"
        if any(_covers(entry, place, only_below=only_below) for entry, only_below in self._allowed):
            return None
        allowed = list_names(self._stated, none="there are none")
        return f"{quote(place.host)} is not among the allowed domains ({allowed})"


def _read(url: str) -> _Place:
    """Read the host an address leads to, in small ASCII letters."""
    text = url.strip(" ")
    if _ODD.search(text):
        raise UnclearError("it holds spaces, backslashes or control characters")
    if not text.startswith("//") and "://" not in text:
        scheme = _SCHEME.match(text)
        if scheme and not text[scheme.end() : scheme.end() + 1].isdigit():
            raise UnclearError("there is no // before its host")
        text = f"//{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            return _Place(str(ipaddress.IPv6Address(host)), port)
        if _TWO_READINGS.search(host):
            raise UnclearError("its host has letters that clients read differently")
        host = (host if host.isascii() else host.encode("idna").decode()).removesuffix(".")
    except ValueError as error:
        raise UnclearError(str(error)) from None
    if len(host) > LONGEST_HOST or not _HOST.fullmatch(host):
        raise UnclearError("its host holds characters that no host has" if host else "it names no host")
    return _Place(host, port)


def _read_entry(stated: str) -> tuple[_Place, bool]:
    try:
        return _read(stated.removeprefix("*").removeprefix(".")), stated.startswith(("*.", "."))
    except UnclearError as error:
        raise InputError(
            f"allowed_domains has {stated!r}: {error}", remedy="give hosts: example.com, *.example.com, localhost:8080"
        ) from None


def _covers(entry: _Place, place: _Place, *, only_below: bool) -> bool:
    if entry.port is not None and entry.port != place.port:
        return False
    if place.host == entry.host:
        return not only_below
    # A number has no subdomains: 9.127.0.0.1 is not below 127.0.0.1.
    return place.host.endswith(f".{entry.host}") and not _NUMBERS.fullmatch(entry.host)


_FORMATS = {
    **dict.fromkeys(("path", "file-path", "directory-path"), "path"),
    **dict.fromkeys(("uri", "url", "uri-reference", "iri", "hostname"), "url"),
}
_DESCRIBED = (
    (re.compile(r"\b(url|uri|web address)\b", re.IGNORECASE), "url"),
    (re.compile(r"\b(path|directory|folder|file ?name)\b", re.IGNORECASE), "path"),
)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ROOTED = re.compile(r"[/~]|\.\.?/|file:|[^\s:]*/\.\.(/|$)", re.IGNORECASE)
_GLOB = re.compile(r"\bglob", re.IGNORECASE)

SHELLS = frozenset({
    "bash", "shell", "sh", "zsh", "terminal", "command", "cmd", "powershell", "python", "ipython", "notebook",
    "jupyter", "node", "repl",
})  # fmt: skip
"""Words in the name of a tool that runs commands or code: what nothing else is known of is one."""

SOURCES = frozenset({"source", "cell", "input"})
"""Parameters of such tools for what they run; elsewhere a source is a path."""

MOVERS = frozenset({"rename", "move", "mv", "copy", "cp", "link", "symlink"})
"""Words in the name of a tool for which the old and the new are paths."""


class Argument(NamedTuple):
    """A value of a call, its parameter, and its kind: `path`, `glob`, `url`, `command`, `patch`, `text`, or empty."""

    parameter: str
    value: Any
    kind: str

    def mentions(self) -> Iterator[Mention]:
        """Yield every path and address that it names."""
        if self.kind == "command" and (isinstance(self.value, str) or _is_argv(self.value)):
            words = list(shell.words_of(self.value))
            yield from (Mention(self.parameter, "path", path, expands=True) for path in shell.paths_in(words))
            yield from (Mention(self.parameter, "url", host, expands=True) for host in shell.hosts_in(words))
        elif isinstance(self.value, str) and self.value and self.kind != "text":
            patched = shell.patched_files(self.value) if self.kind in ("patch", "") else []
            yield from (Mention(self.parameter, "path", file.path) for file in patched)
            if self.kind != "patch":
                yield from self._in_text(self.value)

    def _in_text(self, value: str) -> Iterator[Mention]:
        bare = value.strip()
        is_path = self.kind in ("path", "glob") or _ROOTED.match(bare) is not None
        if _ADDRESS.match(bare) and not bare.lower().startswith("file:"):
            yield Mention(self.parameter, "url", value)
        elif is_path:
            yield Mention(self.parameter, "path", value, expands=self.kind == "glob")
        if self.kind == "url" and (bare.startswith("//") or not (is_path or _ADDRESS.match(bare))):
            yield Mention(self.parameter, "url", value)


class Mention(NamedTuple):
    """A path or an address that a call names, and in which parameter."""

    parameter: str
    kind: Literal["path", "url"]
    text: str
    expands: bool = False
    """It stands in a command or is a pattern: wildcards in it are expanded."""


def arguments_of(offer: ToolOffer, arguments: Mapping[str, Any]) -> list[Argument]:
    """Return every value of a call with its kind; keys of a parameter for paths count as its values."""
    found: list[Argument] = []
    root = offer.tool.schema
    waiting: list[tuple[str, Any, str, dict[str, Any]]] = [("", arguments, "", root)]
    while waiting:
        parameter, value, kind, schema = waiting.pop()
        schema = resolve(schema, root)
        if isinstance(value, Mapping):
            properties = schema.get("properties")
            for key, each in reversed(list(value.items())):
                inner = properties.get(key) if isinstance(properties, dict) else None
                inner = inner if isinstance(inner, dict) else {}
                where = f"{parameter}.{key}".lstrip(".")
                waiting.append((where, each, _kind(offer, str(key), resolve(inner, root)), inner))
                if kind == "path":
                    waiting.append((where, str(key), kind, {}))
        elif isinstance(value, list | tuple) and not (kind == "command" and _is_argv(value)):
            items = schema.get("items")
            inner = items if isinstance(items, dict) else {}
            waiting += [(f"{parameter}[{n}]", each, kind, inner) for n, each in reversed(list(enumerate(value)))]
        else:
            found.append(Argument(parameter, value, kind))
    return found


def _kind(offer: ToolOffer, name: str, schema: dict[str, Any]) -> str:
    declared = {"path": offer.paths, "url": offer.urls, "command": offer.commands}
    if any(declared.values()):
        return next((kind for kind, names in declared.items() if name in names), "text")
    return kind_of(name, schema, offer.name)


def kind_of(name: str, schema: dict[str, Any], tool: str = "") -> str:
    """Tell the kind of a parameter by the format of its schema, its name, its description, or the tool's name."""
    if kind := _FORMATS.get(str(schema.get("format"))):
        return kind
    description = str(schema.get("description", ""))
    about = {word.lower() for word in _NAME_WORD.findall(tool)}
    runs = not SHELLS.isdisjoint(about)
    for word in (each.lower() for each in reversed(_NAME_WORD.findall(name))):
        if word in ("pattern", "patterns") and (_GLOB.search(description) or _GLOB.search(tool)):
            return "glob"
        if (runs and word in SOURCES) or (word in ("old", "new") and not MOVERS.isdisjoint(about)):
            return "command" if runs else "path"
        if kind := KIND_OF_WORD.get(word):
            return kind
    if kind := next((kind for pattern, kind in _DESCRIBED if pattern.search(description)), None):
        return kind
    return "command" if runs else ""


def _is_argv(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)


WAIT = 300.0
"""Seconds that somebody has to answer: five minutes."""

NOT_READING = frozenset({"write", "delete", "execute", "test", "deploy"})
"""Categories of tools that do not take in the file whose path they are given, however large it is."""

KEYS = Redactor(entropy=False, names=False)
"""Finds keys of documented formats. What only looks random, or is called a password, is in every other test file."""

SHORTEST_KEY = 16
"""Characters: no format has shorter keys, and most arguments are."""

Outcome: TypeAlias = Literal["allowed", "refused", "needs-approval"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement on a call, as a plain value that can be recorded."""

    outcome: Outcome
    refusal: Refusal | None = None
    """The policy or limit that speaks against it, where the outcome is `refused`."""
    warnings: tuple[str, ...] = ()
    """Soft policies that it goes against, one line each; they are reported, and the call is run."""
    approved: bool = False
    """True when somebody was asked and said yes."""

    @property
    def allowed(self) -> bool:
        """True when the call may be run now."""
        return self.outcome == "allowed"

    @property
    def why(self) -> str:
        """One line for the model on why it is not run; empty when nothing speaks against it."""
        return "" if self.refusal is None else str(self.refusal)


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that somebody is asked to allow."""

    tool: str
    category: str
    arguments: dict[str, Any]
    """A copy: what happens to it does not change the call."""
    why: str
    """The reason for asking."""


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Decides about a call. Only `True` allows it; an error, another answer or none in time does not."""

Check: TypeAlias = Callable[[ToolOffer, Mapping[str, Any]], str | None]
"""Returns what is wrong with a call under a policy; `None` when it is in order."""


class Guard:
    """Enforces the policies, constraints and approvals of a system."""

    def __init__(
        self,
        system: System,
        *,
        base: str | os.PathLike[str],
        approve: Approve | None = None,
        wait: float | None = WAIT,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        """Enforce this system.

        `base` is where relative paths of calls begin. `approve` is asked about calls that need somebody's consent, for
        `wait` seconds at most; `None` waits as long as it takes. `checks` maps ids of policies to functions that check
        a call: against a hard policy it is refused, against a soft one reported.
        """
        policies = {policy.id: policy for policy in system.policies}
        if unknown := [id for id in checks or {} if id not in policies]:
            raise InputError(f"there is no policy {unknown[0]!r} to check", remedy=f"there are {list_names(policies)}")
        self._limits = system.constraints
        self._rules = ArgumentRules(system.constraints, base=base)
        self._consent = {each.casefold() for each in system.audit.require_approval}
        self._approve, self._wait = approve, wait
        self._checks = [(policies[id], check) for id, check in (checks or {}).items()]

    async def check(
        self, offer: ToolOffer, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """Judge a call; ask somebody where that is needed.

        `used` is more recent than the resources of the state.
        """
        verdict = self.judge(offer, arguments, state, used=used)
        if verdict.outcome != "needs-approval":
            return verdict
        why_not = await self._ask(offer, arguments)
        if why_not is None:
            return msgspec.structs.replace(verdict, outcome="allowed", approved=True)
        remedy = "go on without it, and tell the user what you would have done"
        refused = _refused(offer, "require_approval", why_not, remedy)
        return msgspec.structs.replace(refused, warnings=verdict.warnings)

    def check_sync(
        self, offer: ToolOffer, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """Judge a call like `check`, from code without an event loop, or inside one, which then stands still."""
        from anyio import from_thread  # noqa: PLC0415 - only who asks needs it

        with from_thread.start_blocking_portal() as portal:
            return portal.call(partial(self.check, offer, arguments, state, used=used))

    def judge(
        self, offer: ToolOffer, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """Judge a call without asking anybody: the outcome may be `needs-approval`."""
        for path, unit, spent, most in limits_reached(self._limits, state.task.limits, used or state.runtime.resources):
            rule = path.removeprefix("system.constraints.").replace(".limits", "")
            remedy = "finish with what you have, and say what is left to do"
            return _refused(offer, rule, f"{spent:g} of {most:g} {unit} are used", remedy)
        for refusal in self._rules.crossings(offer, arguments):
            return Verdict(outcome="refused", refusal=refusal)
        warnings: list[str] = []
        for policy, check in self._checks:
            try:
                against = check(offer, arguments)
            except Exception as error:  # noqa: BLE001 - a check that fails has not found a call to be in order
                against = f"the check of the policy failed with {type(error).__name__}"
            if against is None:
                continue
            if policy.enforcement == "hard":
                return _refused(offer, policy.id, against, f"keep to the policy: {policy.rule}")
            warnings.append(" ".join(f"{policy.id} ({policy.rule}): {against}".split()))
        outcome: Outcome = "needs-approval" if self._needs_approval(offer) else "allowed"
        return Verdict(outcome=outcome, warnings=tuple(warnings))

    def _needs_approval(self, offer: ToolOffer) -> str | None:
        """Return why a call needs somebody's consent; `None` when it does not."""
        names = [offer.name, offer.category, first_word(offer.category or offer.name), category_of(offer)]
        named = next((each for each in names if each.casefold() in self._consent), None)
        if named is not None:
            return f"{named} is in require_approval"
        return "the tool states no category, so it may change things" if category_of(offer) == UNSTATED else None

    async def _ask(self, offer: ToolOffer, arguments: Mapping[str, Any]) -> str | None:
        """Ask somebody; `None` when the answer is yes, otherwise what came instead."""
        from anyio import move_on_after  # noqa: PLC0415 - only who asks needs it

        if self._approve is None:
            return "it needs approval, and there is nobody to give it"
        try:
            copied = copy.deepcopy(dict(arguments))
        except RecursionError:
            return "its arguments are nested too deep to be shown to anybody"
        why = self._needs_approval(offer) or ""
        approval = Approval(tool=offer.name, category=category_of(offer), arguments=copied, why=why)
        answer: Any = None
        with move_on_after(math.inf if self._wait is None else self._wait) as scope:
            try:
                answer = await user_function.call(self._approve, approval)
            except Exception as error:  # noqa: BLE001 - whatever a user's function raises, it did not say yes
                return f"asking for approval failed with {type(error).__name__}"
        if scope.cancelled_caught:
            return f"nobody answered within {self._wait:g} seconds"
        return None if answer is True else "approval was denied"


class ArgumentRules:
    """The constraints on what the arguments of a call may name: paths, hosts, and how much of either."""

    def __init__(self, constraints: Constraints, *, base: str | os.PathLike[str]) -> None:
        self._base = Path(base)
        self._forbidden = constraints.forbidden_paths
        self._hosts = None if constraints.allowed_domains is None else Hosts(constraints.allowed_domains)
        self._most = math.inf if constraints.max_file_bytes is None else constraints.max_file_bytes
        self._allow_secrets = constraints.allow_secrets

    def crossings(self, offer: ToolOffer, arguments: Mapping[str, Any]) -> Iterator[Refusal]:
        """Yield everything that speaks against these arguments."""
        found = arguments_of(offer, arguments)
        for parameter, value, _ in found:
            for text in value if isinstance(value, list | tuple) else (value,):
                size = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
                if size > self._most:
                    why = f"the parameter {parameter!r} has {size:,} bytes, and {self._most:,} are allowed"
                    remedy = "write less, or several smaller files"
                    yield Refusal(tool=offer.name, rule="max_file_bytes", parameter=parameter, why=why, remedy=remedy)
        if not self._allow_secrets and (kind := _secret_in(arguments)):
            why = f"its arguments contain a secret ({kind})"
            remedy = "leave it out, or refer to it by the name of a variable or a file; the user may allow it"
            yield Refusal(tool=offer.name, rule="allow_secrets", why=why, remedy=remedy)
        reads = category_of(offer) not in NOT_READING
        forbidden = ForbiddenPaths(self._forbidden, base=self._base)
        for mention in (mention for argument in found for mention in argument.mentions()):
            if mention.kind == "url":
                fault = self._address_fault(mention.text)
            else:
                fault = self._path_fault(mention, forbidden, reads=reads)
            if fault is not None:
                rule, why, remedy = fault
                yield Refusal(tool=offer.name, rule=rule, parameter=mention.parameter, why=why, remedy=remedy)

    def _address_fault(self, url: str) -> tuple[str, str, str] | None:
        if self._hosts is None or (why := self._hosts.beyond(url)) is None:
            return None
        return "allowed_domains", why, "use an allowed domain, or ask the user to allow this one"

    def _path_fault(self, mention: Mention, forbidden: ForbiddenPaths, *, reads: bool) -> tuple[str, str, str] | None:
        if why := forbidden.crossing(mention.text, expands=mention.expands):
            return "forbidden_paths", why, "work on other files, or ask the user to do it"
        size = self._size(mention.text) if reads and not mention.expands else 0
        if size > self._most:
            why = f"{quote(mention.text, LONGEST_PATH)} has {size:,} bytes, and {self._most:,} are allowed"
            return "max_file_bytes", why, "read a part of it with another tool, or another file"
        return None

    def _size(self, path: str) -> int:
        try:
            place = self._base / Path(path.strip().removeprefix("file://")).expanduser()
            return place.stat().st_size if place.is_file() else 0
        except (OSError, ValueError, RuntimeError):
            return 0  # what cannot be looked at has no size; the tool will say so itself


def _secret_in(arguments: Mapping[str, Any]) -> str:
    """Name the kind of a key in the arguments, at any depth; empty when there is none."""
    values: list[Any] = [arguments]
    while values:
        value = values.pop()
        if isinstance(value, str):
            if len(value) >= SHORTEST_KEY and (found := KEYS.find(value)):
                return found[0].kind
        elif isinstance(value, Mapping):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            values += value
    return ""


def limits_reached(limits: Constraints, task: TaskLimits, used: Resources) -> Iterator[tuple[str, str, float, float]]:
    """Yield every limit that is used up: its path, its unit, what is used, and the most. Ten calls let ten run."""
    for path, unit, spent, most in (
        ("system.constraints.max_seconds", "seconds", used.seconds, limits.max_seconds),
        ("task.limits.max_seconds", "seconds", used.seconds, task.max_seconds),
        ("system.constraints.max_cost", "dollars", used.cost, limits.max_cost),
        ("task.limits.max_cost", "dollars", used.cost, task.max_cost),
        ("system.constraints.max_tool_calls", "tool calls", used.tool_calls, limits.max_tool_calls),
    ):
        if most is not None and spent >= most:
            yield path, unit, spent, most


def _refused(offer: ToolOffer, rule: str, why: str, remedy: str) -> Verdict:
    return Verdict(outcome="refused", refusal=Refusal(tool=offer.name, rule=rule, why=why, remedy=remedy))
