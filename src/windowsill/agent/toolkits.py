"""Tools that come with the engine: for the files of one folder, for a shell there, and to fetch pages.

No tool for files leaves the folder. A shell can, and is therefore asked about first.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from windowsill.agent.tools import EngineTool, ToolError, tool
from windowsill.errors import InputError
from windowsill.extras import extra
from windowsill.regex import PatternError, compile_lines

LONGEST = 600.0
"""Seconds that a command may take, whatever the model asks for."""

LARGEST_PAGE = 2 * 1024 * 1024
"""Bytes of a page; the rest is left out."""

PAGE_SECONDS = 60.0

TOOLKITS = ("files", "shell", "fetch")


def toolkit(names: Iterable[str], root: Path, *, hosts: Collection[str] = ()) -> list[EngineTool]:
    """Return the tools of these kits for a folder; raise `InputError` for a kit that does not exist.

    `hosts` are those outside of the public network that pages may be fetched from.
    """
    folder = Folder(root)
    kits = {"files": folder.tools(), "shell": [folder.shell()], "fetch": [fetch_tool(hosts)]}
    made: list[EngineTool] = []
    for name in dict.fromkeys(names):
        if name not in kits:
            raise InputError(f"there are no tools {name!r}", remedy=f"use {', '.join(TOOLKITS)}")
        made += kits[name]
    return made


class Folder:
    """The files below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def tools(self) -> list[EngineTool]:
        """Return the tools for files. What only looks may run at the same time, and once more after a crash."""
        look = tool(category="read", permissions=("read",), paths=("path",), repeatable=True, parallel=True)
        change = tool(category="write", permissions=("write",), paths=("path",))
        delete = tool(category="delete", permissions=("delete",), paths=("path",))
        return [
            *(look(each) for each in (self.list_files, self.read_file, self.search)),
            *(change(each) for each in (self.write_file, self.edit_file)),
            delete(self.delete_file),
        ]

    def shell(self) -> EngineTool:
        """Return the tool that runs commands."""
        # The command has its own time limit, so that what it said until then is not lost.
        execute = tool(category="execute", permissions=("execute",), commands=("command",), seconds=LONGEST + 10)
        return execute(self.run_shell)

    def list_files(self, path: str = ".") -> str:
        """List all files below a folder with their sizes, but hidden ones."""
        found = [f"{file.stat().st_size:>9,}  {self._name(file)}" for file in self._files(self._inside(path))]
        return "\n".join(found) or "(no files)"

    def read_file(self, path: str, first: int = 1, last: int | None = None) -> str:
        """Read a file, or its lines from `first` to `last`. The number before each line is not part of the file."""
        lines = _lines(self._inside(path))
        if not 1 <= first <= max(len(lines), 1) or (last is not None and last < first):
            raise ToolError(f"{path} has {len(lines)} lines; there are no lines {first} to {last or 'the end'}")
        numbered = (f"{first + place:>6}  {line}" for place, line in enumerate(lines[first - 1 : last]))
        return "\n".join(numbered) or "(empty)"

    def search(self, pattern: str, path: str = ".", *, regex: bool = False) -> str:
        """Find the lines of files that hold a text or, with `regex`, that match a regular expression (RE2)."""
        try:
            wanted = compile_lines(pattern) if regex else None
        except PatternError as error:
            raise ToolError(f"{pattern!r} is no regular expression: {error}") from None
        place = self._inside(path)
        found = [
            f"{self._name(file)}:{number}: {line}"
            for file in ([place] if place.is_file() else self._files(place))
            for number, line in enumerate(_lines(file), start=1)
            if (pattern in line if wanted is None else any(wanted.finditer(line.encode())))
        ]
        return "\n".join(found) or "(nothing found)"

    def write_file(self, path: str, text: str) -> str:
        """Write a file, new or in the place of the one that is there."""
        self._replace(self._inside(path), text)
        return f"wrote {len(text):,} characters to {path}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text in a file by another. It has to stand there exactly once: give enough lines around it."""
        place = self._inside(path)
        text = place.read_bytes().decode()
        times = text.count(old) if old else 0
        if times != 1:
            raise ToolError(f"the old text stands {times} times in {path}, not once: read it, and give more around it")
        self._replace(place, text.replace(old, new))
        return f"edited line {text[: text.index(old)].count(chr(10)) + 1} of {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        self._inside(path).unlink()
        return f"deleted {path}"

    async def run_shell(self, command: str, seconds: float = 60.0) -> str:
        """Run a shell command in the folder and get its output. It is stopped after so many seconds, at most 600."""
        said = bytearray()
        with anyio.CancelScope(shield=True):  # what has begun can be stopped only when it is known
            process = await anyio.open_process(
                command, cwd=self.root, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True
            )
        async with process:
            assert process.stdout is not None
            try:
                with anyio.move_on_after(min(seconds, LONGEST)) as limit:
                    async for piece in process.stdout:
                        said += piece
                    await process.wait()
            finally:
                # In time, too late or interrupted: whatever it started ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        late = f"stopped after {min(seconds, LONGEST):g} seconds" if limit.cancelled_caught else ""
        # Before the output: however little of a long one is shown, how it ended is.
        return f"[{late or f'exit code {process.returncode}'}]\n{said.decode(errors='backslashreplace')}"

    def _inside(self, path: str) -> Path:
        """Find the file of that name, links followed; raise `ToolError` for one outside."""
        place = (self.root / path).resolve()
        if not place.is_relative_to(self.root):
            raise ToolError(f"{path} is outside of the folder: give a path below it, such as src/main.py")
        return place

    def _name(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()

    def _files(self, top: Path) -> Iterator[Path]:
        if not top.is_dir():
            raise ToolError(f"{self._name(top)} is no folder")
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            files = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
            yield from (file for file in files if file.is_file() and file.resolve().is_relative_to(self.root))

    def _replace(self, place: Path, text: str) -> None:
        """Write beside it first: whoever reads it meanwhile, and whatever happens, finds the old text or the new."""
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            beside.write_bytes(text.encode())
            if place.exists():
                shutil.copymode(place, beside)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


def _lines(file: Path) -> list[str]:
    """Read the lines of a file, whatever it holds."""
    return [line.decode(errors="backslashreplace") for line in file.read_bytes().splitlines()]


def fetch_tool(hosts: Collection[str] = ()) -> EngineTool:
    """Make the tool that fetches pages of the public network, and of these hosts."""

    @tool(category="read", urls=("url",), repeatable=True, parallel=True, seconds=PAGE_SECONDS)
    async def fetch(url: str) -> str:
        """Fetch a page of the web and get its text. A redirect is told, not followed."""
        where = urlsplit(url)
        if where.scheme not in ("http", "https") or not where.hostname:
            raise ToolError(f"{url} is no address of the web: give one such as https://example.com/page")
        if where.hostname not in hosts and not await to_thread.run_sync(_is_public, where.hostname):
            raise ToolError(f"{where.hostname} is not in the public network, and is not fetched from")
        return await _fetch(url)

    return fetch


async def _fetch(url: str) -> str:
    with extra("http", "fetching a page"):
        import httpx2  # noqa: PLC0415 - heavy, and most agents fetch nothing
    page = bytearray()
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=PAGE_SECONDS / 2) as client,
            client.stream("GET", url) as response,
        ):
            async for piece in response.aiter_bytes():
                page += piece
                if len(page) >= LARGEST_PAGE:
                    break
    except httpx2.HTTPError as error:
        raise ToolError(f"{url} cannot be fetched: {type(error).__name__}") from None
    moved = f" to {response.headers['location']}" if "location" in response.headers else ""
    return f"[status {response.status_code}{moved}]\n{bytes(page[:LARGEST_PAGE]).decode(errors='replace')}"


def _is_public(host: str) -> bool:
    """Tell whether a host is one of the public network: no page may lead an agent to services of this machine."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return True  # the request will say so
    return all(ipaddress.ip_address(each[4][0]).is_global for each in found)
