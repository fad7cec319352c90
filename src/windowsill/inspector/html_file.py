"""One session as one file: the page with its scripts, its styles and the answers that it would have asked for."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import windowsill
from windowsill.errors import InputError
from windowsill.history.entries import within
from windowsill.inspector import calls, explanations, history, overview, window
from windowsill.inspector.explanations import address
from windowsill.inspector.opened import OpenSession, OpenSessions
from windowsill.inspector.server import STATIC, encode
from windowsill.store import Store

LARGEST = 25_000_000
"""Bytes of the answers in a file, unpacked: what is worth most comes first, and the rest is left out and named."""

MOST_REQUESTS = 40
"""Calls whose exact request is in the file: the last ones."""

MOST_MESSAGES = 5_000
"""Messages that are in the file as they were added, hidden ones too: the last ones."""

PACKAGES = "vendor/packages.json"
"""Is there when the libraries of the page are."""

_STYLE = re.compile(r'<link rel="stylesheet" href="static/([\w./-]+)">')
_SCRIPT = re.compile(r'<script type="module" src="static/([\w./-]+)"></script>')
_ICON = re.compile(r'href="static/([\w./-]+\.svg)"')
_IMPORT = re.compile(r'"\./(?:vendor/)?([\w.-]+\.js)"')


class ExportedPage(NamedTuple):
    """A page in one file, and what is not in it."""

    html: str
    notes: tuple[str, ...]


def export_page(store: Store, session: str, *, static: Path | None = None, largest: int = LARGEST) -> ExportedPage:
    """Return a session as a page that works without a server; `static` is the folder of its files."""
    static = static or STATIC
    if not (static / PACKAGES).is_file():
        raise InputError(
            "the libraries of the page are not installed",
            remedy="install npm and windowsill again, or run `python hatch_build.py` in a clone",
        )
    opened = OpenSessions(store)
    with opened.use(session) as each:
        answers, notes = _collect(each, largest)
        listed = overview.sessions(opened)
        found = [row for row in listed["sessions"] if row["id"] == session]
        answers["api/sessions"] = encode({"total": 1, "offset": 0, "sessions": found})
    about = {
        "version": windowsill.__version__,
        "static": True,
        "can_change": False,
        "store": None,
        "session": session,
        "proxy": None,
        "notes": notes,
    }
    parts = (encode(address) + b":" + answer for address, answer in answers.items())
    data = b'{"about":' + encode(about) + b',"answers":{' + b",".join(parts) + b"}}"
    return ExportedPage(_page(static, data), tuple(notes))


def _collect(opened: OpenSession, largest: int) -> tuple[dict[str, bytes], list[str]]:
    """Collect answers, those that are worth most first, until the file is full."""
    answers: dict[str, bytes] = {}
    left = largest
    skipped: dict[str, int] = {}
    for what, place, make in _wanted(opened):
        if what not in skipped:
            answer = encode(make())
            if len(answer) <= left:
                left -= len(answer)
                answers[place] = answer
                continue
        skipped[what] = skipped.get(what, 0) + 1
    return answers, [f"left out, as the file would be too large: {count:,} {what}" for what, count in skipped.items()]


def _wanted(opened: OpenSession) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield what a page may ask for: what it is, its address, and how it is made."""
    id = opened.session.id

    def at(path: str, **parameters: object) -> str:
        return address(path, session=id, **parameters)

    yield "window", at("api/window"), partial(window.window, opened)
    yield "history", at("api/history"), partial(history.history, opened)
    yield "state", at("api/state"), partial(overview.state, opened)
    listed = []
    for place, page in _pages(at("api/calls"), partial(calls.calls, opened)):
        listed += [each["id"] for each in page["calls"] if each["id"] is not None]
        yield "pages of calls", place, partial(dict, page)
    pages = range((len(opened.session.view.items) - 1) // window.PAGE, -1, -1)
    for number in pages:
        yield "pages of items", at("api/items", page=number), partial(window.items, opened, number)
    known = []
    for place, page in _pages(at("api/folds"), partial(explanations.folds, opened)):
        known += [each["id"] for each in page["folds"]]
        yield "pages of folds", place, partial(dict, page)
    for fold in known:
        yield "folds", at("api/fold", id=fold), partial(explanations.fold, opened, fold)
    newest = sorted(listed, key=lambda each: int(each[1:]) if each[1:].isdigit() else 0)[-MOST_REQUESTS:]
    for call in reversed(newest):
        yield "calls", at("api/call", id=call), partial(calls.call, opened, call)
        count = calls.call(opened, call)["messages"]["count"]
        for number in range((count + window.PAGE - 1) // window.PAGE):
            yield (
                "requests",
                at("api/call/messages", id=call, page=number),
                partial(calls.call_messages, opened, call, number),
            )
    for message in _messages(opened):
        yield "messages", at("api/message", id=message), partial(window.message, opened, message)


def _pages(first: str, ask: Callable[[int | None], dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Follow a list from its newest page to its oldest."""
    place: str | None = first
    while place is not None:
        before = re.search(r"&before=(\d+)$", place)
        page = ask(int(before[1]) if before else None)
        yield place, page
        place = page["older"]


def _messages(opened: OpenSession) -> list[str]:
    """Return the ids of the last messages of the branch."""
    journal = opened.session.journal
    path = within(journal.path(journal.version), journal.version - 4 * MOST_MESSAGES, journal.version)
    return [entry.id for entry in journal.walk(path, kinds=("message",))][-MOST_MESSAGES:][::-1]


# The file


def _page(static: Path, data: bytes) -> str:
    """Put the styles, the scripts and the data into the page."""
    modules = [*static.glob("*.js"), *static.glob("vendor/*.js")]
    imports = {f"windowsill/{file.name}": _script_address(file) for file in sorted(modules)}
    found = _SCRIPT.search(source := (static / "index.html").read_text(encoding="utf-8"))
    if found is None:
        raise InputError("the page has no script", remedy="install windowsill again", file=str(static / "index.html"))
    mapping = encode({"imports": imports}).decode()
    begin = f'import "windowsill/{Path(found[1]).name}";'
    styles: list[str] = []

    def style(match: re.Match[str]) -> str:
        styles.append((static / match[1]).read_text(encoding="utf-8").replace("</", "<\\/"))
        return f"<style>{styles[-1]}</style>"

    page = _STYLE.sub(style, source)
    page = _ICON.sub(lambda match: f'href="{_data(static / match[1], "image/svg+xml")}"', page)
    hashes = [" ".join(f"'sha256-{_digest(each)}'" for each in texts) for texts in ((mapping, begin), styles)]
    policy = f"default-src 'none'; script-src {hashes[0]} data:; style-src {hashes[1]}; img-src data:"
    # Requests have most of their text in common. Nothing in base64 can end its script, or begin another one.
    packed = base64.b64encode(gzip.compress(data, mtime=0)).decode()
    scripts = (
        f'<script type="importmap">{mapping}</script>'
        f'<script type="text/plain" id="windowsill-data">{packed}</script>'
        f'<script type="module">{begin}</script>'
    )
    page = _SCRIPT.sub(lambda _: scripts, page)
    return page.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">', 1)


def _script_address(file: Path) -> str:
    """Return a module as an address; what it imports is found by name, as such an address has no neighbours."""
    text = _IMPORT.sub(r'"windowsill/\1"', file.read_text(encoding="utf-8"))
    return "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()


def _data(file: Path, media: str) -> str:
    return f"data:{media};base64," + base64.b64encode(file.read_bytes()).decode()


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
