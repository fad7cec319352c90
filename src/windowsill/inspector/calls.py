"""Model calls: all of them over time, and the exact request of one beside the one before it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from windowsill import providers
from windowsill.errors import NotFoundError
from windowsill.history.entries import Entry, on_path, within
from windowsill.history.head import Call, call_meta
from windowsill.inspector.explanations import address
from windowsill.inspector.ledger import CallFigures
from windowsill.inspector.opened import OpenSession
from windowsill.inspector.window import PAGE, SHOWN, slice_of
from windowsill.session.audit import prompt_of

MOST_CALLS = 500
READ_SECONDS = 0.05
"""Seconds in which one answer reads on in the calls before those it lists, so that the sums become complete."""

AROUND = 40
"""Characters on each side of a difference that are shown."""

EXPECTED = 0.98
"""Of the tokens that equal the call before: a cache that served as much did what was expected."""


def calls(opened: OpenSession, before: int | None = None) -> dict[str, Any]:
    """List calls with what happened among them: the newest, or those before an entry."""
    ledger, session = opened.ledger, opened.session
    ledger.catch_up(opened.version)
    ledger.reach(calls=1, before=before, seconds=READ_SECONDS)
    listed, events, older = ledger.page(before, MOST_CALLS)
    path = session.journal.path(opened.version)
    if len(path) > 1 or opened.version > sum(last - first + 1 for first, last in path):
        listed = [msgspec.structs.replace(each, left=not on_path(path, each.seq)) for each in listed]
    made, _ = opened.composition()
    totals = msgspec.to_builtins(ledger.totals) | {
        "cache_share": ledger.totals.cache_share,
        "complete": ledger.complete,
    }
    return {
        "session": session.id,
        "version": opened.version,
        "complete": ledger.complete,
        "older": None if older is None else address("api/calls", session=session.id, before=older),
        "calls": msgspec.to_builtins(listed),
        "events": msgspec.to_builtins(events),
        "totals": totals,
        "limit": made.limit,
        "window": made.window,
    }


_MARKER = re.compile(rb',?"cache_control":\{[^{}]*\}')


class _Body:
    """A request taken apart, without reading what stands in its messages.

    It is compared without the markers that tell a provider what to cache: they move with each call, and no cache
    takes them into account.
    """

    def __init__(self, exact: bytes, call: Call) -> None:
        self.exact = exact
        self.data = _MARKER.sub(b"", exact)
        field = providers.get(call.format).spec.messages_field
        fields = msgspec.json.decode(self.data, type=dict[str, msgspec.Raw])
        raw = fields.get(field)
        self.messages = (
            [] if raw is None else [bytes(each) for each in msgspec.json.decode(raw, type=list[msgspec.Raw])]
        )


def _find(opened: OpenSession, id: str) -> tuple[Entry, Call]:
    entry = opened.session.journal.find(id, "call")
    return entry, call_meta(entry.meta)


def _neighbours(opened: OpenSession, entry: Entry) -> tuple[Entry | None, Entry | None]:
    """Return the calls before and after one, on its own branch."""
    journal = opened.session.journal
    before = journal.last(within(journal.path(entry.seq), 1, entry.seq - 1), "call")
    path = journal.path(journal.version)
    after = None
    if on_path(path, entry.seq):
        after = next(iter(journal.walk(within(path, entry.seq + 1, journal.version), kinds=("call",))), None)
    return before, after


def call(opened: OpenSession, id: str) -> dict[str, Any]:
    """Describe one call, by its id or its number: the strip against the call before, the cache, its sections."""
    id = _numbered(opened, id) if id.isdecimal() else id
    entry, made = _find(opened, id)
    before, after = _neighbours(opened, entry)
    body = _Body(opened.body(id), made)
    earlier = call_meta(before.meta) if before is not None else None
    then = _Body(opened.body(before.id), earlier) if before is not None and earlier is not None else None
    strip = compare(then.data, body.data) if then is not None else None
    figures = _figures(opened, entry)
    ledger = opened.ledger
    ledger.reach(seconds=READ_SECONDS)
    return {
        "id": id,
        "number": ledger.calls.index(figures) + 1 if ledger.complete else None,
        "calls": ledger.totals.calls,
        "seq": entry.seq,
        "at": entry.at,
        "model": made.model,
        "format": made.format,
        "tokens": figures.tokens,
        "bytes": len(body.exact),
        "usage": {name: getattr(figures, name) for name in ("cached", "written", "new", "output")}
        if figures.reported
        else None,
        "cost": figures.cost,
        "before": before.id if before is not None else None,
        "after": after.id if after is not None else None,
        "answer": _answer(opened, entry),
        "folds": list(made.folds),
        "strip": strip,
        "cache": _cache(made, figures, strip),
        "sections": [
            {"name": name, "bytes": size, "tokens": tokens, "state": _state(name, made, earlier)}
            for name, size, tokens in _sections(opened, made)
        ],
        "messages": {
            "count": len(body.messages),
            "first_new": _first_new(body, then),
            "page_size": PAGE,
        },
    }


def _numbered(opened: OpenSession, number: str) -> str:
    """Return the id of the call with this number, counted from the first of the session."""
    ledger = opened.ledger
    ledger.catch_up(opened.version)
    while not ledger.complete:
        ledger.reach(calls=len(ledger.calls) + 1)
    wanted = int(number[:18])  # More digits than any count has.
    found = ledger.calls[wanted - 1].id if 0 < wanted <= len(ledger.calls) else None
    if found is None:
        raise NotFoundError(f"there is no call {number}", remedy=f"the session has {len(ledger.calls):,}")
    return found


def _figures(opened: OpenSession, entry: Entry) -> CallFigures:
    """Return the figures of a call; older ones are read till it is among them."""
    ledger = opened.ledger
    ledger.catch_up(opened.version)
    while not ledger.complete and ledger.first > entry.seq:
        ledger.reach(calls=len(ledger.calls) + 1)
    found = next((each for each in reversed(ledger.calls) if each.seq == entry.seq), None)
    if found is None:
        raise NotFoundError(f"the figures of call {entry.id!r} are gone", remedy="load the page again")
    return found


def _answer(opened: OpenSession, entry: Entry) -> str | None:
    journal = opened.session.journal
    later = journal.store.read(journal.session, entry.seq + 1, entry.seq + 1, kinds=("message",), bodies=False)
    return later[0].id if later else None


def _sections(opened: OpenSession, made: Call) -> list[tuple[str, int, int]]:
    """Return the parts of a request beside its messages, with bytes and tokens."""
    journal = opened.session.journal
    scale = journal.scale
    system, tools = prompt_of(journal, made)
    sizes = {name: len(journal.store.blob(journal.session, id) or b"") for name, id in made.blobs.items()}
    weights = {
        "system": scale.tokens(scale.weigh(system)) if system is not None else 0,
        "tools": scale.tokens(scale.weigh_tools(tools)),
        "rest": 0,
    }
    return [
        ("fields" if name == "rest" else name, sizes[name], tokens) for name, tokens in weights.items() if name in sizes
    ]


def _state(section: str, made: Call, earlier: Call | None) -> str:
    name = "rest" if section == "fields" else section
    if earlier is None or name not in earlier.blobs:
        return "new"
    return "same" if earlier.blobs[name] == made.blobs[name] else "changed"


def _cache(made: Call, figures: CallFigures, strip: dict[str, Any] | None) -> dict[str, Any]:
    """Compare what a cache could serve with what it did."""
    expected, reported = made.cached, figures.cached if figures.reported else None
    if strip is None:
        why = "the first request: nothing can be in a cache"
    elif reported is None:
        why = "the provider reported no figures"
    elif reported >= EXPECTED * expected:
        why = "as expected"
    elif reported == 0:
        why = "the cache served nothing: it had expired, the prefix is too short, or the provider keeps none"
    else:
        why = "the cache served less than what equals the call before"
    missing = None if reported is None else max(0, expected - reported)
    return {"expected": expected, "reported": reported, "missing": missing, "why": why}


# Comparing bytes


def compare(then: bytes, now: bytes) -> dict[str, Any]:
    """Compare a request with the one before: what is the same at its start and at its end, where it differs first."""
    same = _common(then, now)
    most = min(len(then), len(now)) - same
    tail = _common(then[::-1][:most], now[::-1][:most])
    only_grew = len(then) - same - tail <= 0
    return {
        "same": same,
        "total": len(now),
        "before_total": len(then),
        "first_difference": same if same < max(len(then), len(now)) else None,
        "tail": tail,
        "gone": len(then) - same - tail,
        "where": path_at(now, same) if same < len(now) else "",
        "then": _excerpt(then, same),
        "now": _excerpt(now, same),
        "grew_only": only_grew,
        "why": "the same bytes" if then == now else "only grew" if only_grew else "earlier bytes changed",
    }


def _common(one: bytes, other: bytes) -> int:
    """Count the bytes at the start that two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _excerpt(data: bytes, at: int) -> str:
    return data[max(0, at - AROUND) : at + AROUND].decode(errors="replace")


def path_at(data: bytes, at: int) -> str:
    """Return the path of the value in a JSON text that a byte belongs to, such as `messages[3].content`."""
    try:
        parts = _children(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    place = 0
    for name, raw in parts:
        place = data.find(raw, place)
        if at < place + len(raw):
            inner = path_at(raw, at - place) if at >= place and raw[:1] in b"[{" else ""
            return name + (f".{inner}" if inner and not inner.startswith("[") else inner)
        place += len(raw)
    return ""


def _children(data: bytes) -> list[tuple[str, bytes]]:
    if data[:1] == b"{":
        return [(name, bytes(raw)) for name, raw in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items()]
    if data[:1] == b"[":
        listed = msgspec.json.decode(data, type=list[msgspec.Raw])
        return [(f"[{place}]", bytes(raw)) for place, raw in enumerate(listed)]
    return []


# The request itself


def _first_new(body: _Body, then: _Body | None) -> int:
    """Return the number of the first message that the call before did not have."""
    before = then.messages if then is not None else []
    pairs = enumerate(zip(before, body.messages, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(body.messages)))


def call_messages(opened: OpenSession, id: str, page: int = 0) -> dict[str, Any]:
    """Return one page of the messages of a request, as JSON for people, each compared with the call before."""
    entry, made = _find(opened, id)
    before, _ = _neighbours(opened, entry)
    body = _Body(opened.body(id), made)
    then = _Body(opened.body(before.id), call_meta(before.meta)).messages if before is not None else []
    start = page * PAGE
    found = []
    for place, raw in enumerate(body.messages[start : start + PAGE], start):
        pretty = msgspec.json.format(raw, indent=2).decode(errors="replace")
        state = "new" if place >= len(then) else "same" if then[place] == raw else "changed"
        found.append(
            {
                "index": place,
                "role": _role(raw),
                "bytes": len(raw),
                "state": state,
                "json": pretty[:SHOWN],
                "cut": len(pretty) > SHOWN,
                "length": len(pretty),
            }
        )
    return {"page": page, "count": len(body.messages), "messages": found}


class _Role(msgspec.Struct):
    role: str | None = None
    type: str | None = None


def _role(raw: bytes) -> str | None:
    try:
        found = msgspec.json.decode(raw, type=_Role)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found.role or found.type


def request(opened: OpenSession, id: str, offset: int = 0) -> dict[str, Any]:
    """Return a slice of the exact body of a request."""
    return slice_of(opened.body(id).decode(errors="replace"), offset)
