"""Run an agent behind a proxy of its own, and look at one that runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

import msgspec

from windowsill.errors import InputError, WindowsillError
from windowsill.mcp.server import bracketed
from windowsill.text import count_of

START_SECONDS = 30.0
ASK_SECONDS = 3.0
HEALTH_SECONDS = 15.0
"""The wait for the health of a proxy, which may have many requests to answer first."""

RESTARTS = 20
SIGN_IN = 41
"""The exit code of Gemini CLI where it was never told how to sign in: with another address it takes no default."""

OPENCODE_CONFIG = "OPENCODE_CONFIG_CONTENT"
GEMINI_SETTINGS, GEMINI_DEFAULTS = "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
GEMINI_FOLDERS = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:/ProgramData/gemini-cli"}
"""The folders in which Gemini CLI has the settings of a machine; elsewhere it is `/etc/gemini-cli`."""

ROOTS_FOLDER = Path("/run")
"""The folder for files of root that live as long as a program."""

PROXY = "WINDOWSILL_PROXY"
"""Names the proxy to the tools, however an agent starts them."""

Say = Callable[[str], object]


class Agent(msgspec.Struct, frozen=True):
    """The way in which an agent is told where to send its requests, and which tools it gets."""

    bases: Mapping[str, str]
    tools: Callable[[list[str], str], list[str]] | None = None
    config: Callable[[list[str], str, Path], dict[str, str]] | None = None
    advice: str = ""
    """The way to give it the tools where it was not possible here."""
    hints: Mapping[int, str] = {}
    """Remedies for exit codes."""
    extra: Mapping[str, str] = {}
    """Further variables."""

    def environment(self, server: list[str], address: str, folder: Path) -> dict[str, str]:
        """Return the variables that the agent gets besides those it has; what the user set himself stays.

        `folder` is for settings that it reads from a file only.
        """
        own = {name: value for name, value in self.extra.items() if name not in os.environ}
        config = self.config(server, address, folder) if self.config is not None else {}
        return {name: address + path for name, path in self.bases.items()} | own | config

    def arguments(self, server: list[str], address: str) -> list[str]:
        """Return the arguments that give the agent the tools of the MCP server that `server` starts."""
        return self.tools(server, address) if self.tools is not None else []


def _claude_tools(server: list[str], address: str) -> list[str]:
    del address  # the environment says it
    entry = {"command": server[0], "args": server[1:]}
    return ["--mcp-config", json.dumps({"mcpServers": {"windowsill": entry}})]


def _codex_tools(server: list[str], address: str) -> list[str]:
    place = "mcp_servers.windowsill"
    values = {
        "openai_base_url": f"{address}/v1",
        f"{place}.command": server[0],
        f"{place}.args": server[1:],
    }
    return [part for name, value in values.items() for part in ("-c", f"{name}={json.dumps(value)}")]


def _gemini_config(server: list[str], address: str, folder: Path) -> dict[str, str]:
    """Return the variable that names the defaults of Gemini CLI, which every setting of the user stands above.

    It reads them only where nobody but root can have written them: nothing is returned for other users.
    """
    del address  # the environment says it
    if not _is_roots(folder):
        return {}
    machine = GEMINI_FOLDERS.get(sys.platform, "/etc/gemini-cli")
    settings = Path(os.environ.get(GEMINI_SETTINGS) or f"{machine}/settings.json")
    before = Path(os.environ.get(GEMINI_DEFAULTS) or settings.parent / "system-defaults.json")
    try:
        defaults = json.loads(before.read_bytes()) if before.exists() else {}
        defaults.setdefault("mcpServers", {})["windowsill"] = {"command": server[0], "args": server[1:]}
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError(f"{before} is no JSON object of settings", remedy="mend or remove it") from None
    path = folder / "gemini.json"
    path.write_text(json.dumps(defaults))
    return {GEMINI_DEFAULTS: str(path)}


def _is_roots(folder: Path) -> bool:
    """Tell whether nobody but root can write into a folder, or into one above it."""
    found = [each.stat() for each in (folder, *folder.parents)]
    return all(each.st_uid == 0 and not each.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for each in found)


def _opencode_config(server: list[str], address: str, folder: Path) -> dict[str, str]:
    """Return the variable that OpenCode joins with its settings; what the user has in it stays."""
    del folder
    try:
        config = json.loads(os.environ.get(OPENCODE_CONFIG) or "{}")
        bases = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}
        for name, path in bases.items():
            options = config.setdefault("provider", {}).setdefault(name, {}).setdefault("options", {})
            options["baseURL"] = address + path
        config.setdefault("mcp", {})["windowsill"] = {"type": "local", "command": server}
    except (ValueError, AttributeError):
        raise InputError(f"{OPENCODE_CONFIG} is no JSON object of settings", remedy="mend or unset it") from None
    return {OPENCODE_CONFIG: json.dumps(config)}


ANTHROPIC = {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_BASE": ""}
OPENAI = {"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"}
GEMINI = {"GOOGLE_GEMINI_BASE_URL": "", "GEMINI_API_BASE": ""}

AGENTS = {
    # Older versions load every tool at once behind an address that is not their provider's.
    "claude": Agent(
        ANTHROPIC,
        tools=_claude_tools,
        extra={"CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1", "ENABLE_TOOL_SEARCH": "true"},
    ),
    "codex": Agent(OPENAI, tools=_codex_tools),
    "gemini": Agent(
        GEMINI,
        config=_gemini_config,
        advice="`gemini mcp add --scope user windowsill windowsill mcp` lets it read what was folded next time",
        hints={SIGN_IN: "choose a way to sign in first: start `gemini` once, and take an API key"},
    ),
    "opencode": Agent({}, config=_opencode_config),
}
ANY = Agent({**ANTHROPIC, **OPENAI, **GEMINI})
"""Any other program, aider too."""

PROVIDERS = {"anthropic": ANTHROPIC, "openai": OPENAI, "gemini": GEMINI}


def _own_upstreams(options: Sequence[str], say: Say) -> list[str]:
    """Return options that lead the proxy to the providers that the user's own variables name."""
    stated = {value.partition("=")[0] for name, value in pairwise(options) if name == "--upstream"}
    found = []
    for provider, names in PROVIDERS.items():
        name = next((name for name in names if os.environ.get(name)), None)
        if name is not None and provider not in stated:
            say(f"windowsill: requests to {provider} go on to {os.environ[name]}, as {name} says")
            found += ["--upstream", f"{provider}={os.environ[name]}"]
    return found


def launch(command: Sequence[str], options: Sequence[str], say: Say) -> int:
    """Run a command behind a proxy and return its exit code; the proxy lives as long as it does."""
    command = list(command[1:] if command[0] == "--" else command)
    if not command:
        raise InputError("no program is named", remedy="give one, such as `windowsill run claude`")
    if command[0].startswith("-"):
        raise InputError(f"there is no option {command[0]}", remedy="see `windowsill run --help`")
    program = shutil.which(command[0])
    if program is None:
        raise InputError(f"there is no program {command[0]!r}", remedy="install it, or give its path")
    agent = AGENTS.get(os.path.basename(command[0]), ANY)  # noqa: PTH119 - the name as it was typed
    options = [*options, *_own_upstreams(options, say)]
    place = ROOTS_FOLDER if os.access(ROOTS_FOLDER, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="windowsill-", dir=place) as folder,
        ChildProxy([*options, "--project", str(Path.cwd())], say) as proxy,
    ):
        store = list(options[options.index("--store") : options.index("--store") + 2]) if "--store" in options else []
        server = [sys.executable, "-m", "windowsill", "mcp", "--proxy", proxy.address, *store]
        full = [program, *agent.arguments(server, proxy.address), *command[1:]]
        own = agent.environment(server, proxy.address, Path(folder))
        child = subprocess.Popen(full, env={**os.environ, PROXY: proxy.address, **own})  # noqa: S603 - the user's
        # Ctrl-C is for the agent, which gets it too; this process waits for it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = child.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        if code in agent.hints:
            say(f"windowsill: {agent.hints[code]}")
        _tell(proxy.health(), say, store, agent.advice)
    return code if code >= 0 else 128 - code


class ChildProxy:
    """A proxy in a process of its own, which is started again when it dies."""

    def __init__(self, options: Sequence[str], say: Say) -> None:
        self._options = list(options)
        self._say = say
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._port: int = found.getsockname()[1]
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._failed = ""

    @property
    def address(self) -> str:
        """The base URL of the proxy."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> ChildProxy:
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        if not self._ready.wait(START_SECONDS) or self._failed:
            self._end()
            if self._failed:
                raise WindowsillError(f"the proxy did not start: {self._failed}")
            raise WindowsillError("the proxy took too long to start", remedy="`windowsill proxy --verbose` shows why")
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def health(self) -> dict[str, Any]:
        """Return what the proxy says of itself; nothing when it does not answer."""
        try:
            return ask_health(self.address)
        except (OSError, ValueError):
            return {}

    def _watch(self) -> None:
        """Start the proxy, and start it again when it dies: an agent without it would be cut off."""
        for attempt in range(RESTARTS):
            command = [sys.executable, "-m", "windowsill", "proxy", "--port", str(self._port), *self._options]
            # A session of its own: Ctrl-C in the terminal is meant for the agent.
            self._process = process = subprocess.Popen(  # noqa: S603 - ourselves
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            assert process.stderr is not None
            heard: list[str] = []
            with process, process.stderr:
                for line in process.stderr:
                    if line.startswith(b"http://"):
                        self._ready.set()
                    else:
                        heard.append(line.decode(errors="replace").strip())
            if self._ended.is_set():
                return
            if not self._ready.is_set():
                heard = [line.removeprefix("windowsill: ") for line in heard[-3:]]
                self._failed = " ".join(heard) or f"it ended with {process.returncode}"
                self._ready.set()
                return
            self._say(f"windowsill: the proxy died ({process.returncode}) and is started again ({attempt + 1})")

    def _end(self) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._watcher.join(START_SECONDS)


def ask_health(address: str, token: str | None = None) -> dict[str, Any]:
    """Ask a proxy how it does; `OSError` when nobody answers, `ValueError` when what answers is none."""
    headers = {"x-windowsill-token": token} if token else {}
    request = urllib.request.Request(f"{address}/__windowsill/health", headers=headers)  # noqa: S310 - stated
    with urllib.request.urlopen(request, timeout=HEALTH_SECONDS) as answer:  # noqa: S310 - as above
        value = json.load(answer)
        return value if isinstance(value, dict) else {}


def check_health(host: str, port: int, say: Say, token: str | None = None) -> bool:
    """Say how the proxy at an address does; true when all is well."""
    try:
        health = ask_health(f"http://{bracketed(host)}:{port}", token)
    except urllib.error.HTTPError as error:
        say(f"something answers at {host}:{port}, but it is no proxy of ours, or wants a token ({error})")
        return False
    except (OSError, ValueError) as error:
        why = str(getattr(error, "reason", error)) or type(error).__name__
        say(f"no proxy answers at {host}:{port} ({why}): start one with `windowsill proxy --port {port}`")
        return False
    counts = health.get("counts", {})
    say(f"{health.get('status')}: version {health.get('version')}, up {health.get('seconds')} seconds")
    say(", ".join(f"{value:,} {name}" for name, value in counts.items()) or "no requests yet")
    lost = {name: why for name, address in health.get("upstreams", {}).items() if (why := _unreachable(address))}
    for name, address in health.get("upstreams", {}).items():
        say(f"{name}: {address}" + (f" cannot be reached from here ({lost[name]})" if name in lost else ""))
    for name in (next(iter(each)) for each in (ANTHROPIC, OPENAI, GEMINI)):
        base = os.environ.get(name, "")
        if urlsplit(base).port != port:
            say(f"{name} is {base or 'not set'} here: a client of it that is started here does not use this proxy")
    for fault in health.get("faults", []):
        say(f"fault: {fault.get('what')}")
    return not health.get("faults") and len(lost) < len(health.get("upstreams", {}))


def _unreachable(address: str) -> str:
    """Return why a server cannot be reached; empty when it can."""
    place = urlsplit(address)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), ASK_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _tell(health: dict[str, Any], say: Say, store: Sequence[str], advice: str) -> None:
    """Say in one line what the proxy did."""
    counts = health.get("counts", {})
    if not counts:
        if health:
            say("windowsill: no request came to the proxy: settings of the program may name another address")
        return
    calls, folds = counts.get("calls", 0), counts.get("folds", 0)
    parts = [count_of(calls, "call"), count_of(folds, "fold")]
    if folds:
        part = counts["bytes not sent"] / max(1, counts["bytes of clients"])
        parts.append(f"{counts['bytes not sent'] // 1_000:,} KB not sent ({part:.0%})")
    if counts.get("tokens of requests"):
        parts.append(f"{counts['tokens from the cache'] / counts['tokens of requests']:.0%} read from the cache")
    if counts.get("faults"):
        parts.append(f"{counts['faults']:,} passed on as they came")
    look = "; look: `windowsill inspect`"
    if session := health.get("folded") or health.get("session"):
        session = " ".join(map(quote, [session, *store]))
        look = f"; look: `windowsill inspect {session}`"
    say(f"windowsill: {', '.join(parts)}{look}")
    if folds and advice and not counts.get("calls with our tools"):
        say(f"windowsill: {advice}")
    if folds and session:
        say(f"windowsill: to go on without the proxy: `windowsill sessions export {session} --handoff`")
    for fault in health.get("faults", [])[-1:]:
        say(f"windowsill: the last fault was: {fault.get('what')}")
