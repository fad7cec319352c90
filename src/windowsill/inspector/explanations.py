"""Folds: what was hidden, by whom and why; and where any words are, in the window or behind which fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec

from windowsill.history.entries import Entry, on_path, within
from windowsill.history.folds import BlockSpan, Fold, ends
from windowsill.history.view import fold_meta, message_meta
from windowsill.inspector.opened import OpenSession, OpenSessions
from windowsill.inspector.window import PAGE, cut_text, describe_fold, index_of, preview, price
from windowsill.search import Archive, Found
from windowsill.session.audit import outer_fold, span_records
from windowsill.session.branches import removed_spans
from windowsill.tokens import Weight

MOST_FOLDS = 50
MOST_SPANS = 200
MOST_HIDDEN = 200
MOST_FOUND = 20

SAFE = "!'()*-._~"
"""The characters that a browser leaves as they are in a parameter of an address."""


def address(path: str, **parameters: object) -> str:
    """Return an address as the page spells it."""
    return f"{path}?" + "&".join(f"{name}={quote(str(value), safe=SAFE)}" for name, value in parameters.items())


def folds(opened: OpenSession, before: int | None = None) -> dict[str, Any]:
    """List the folds of the current branch, the newest first."""
    journal = opened.session.journal
    path = journal.path(journal.version)
    gone = removed_spans(journal, path)
    wanted = within(path, 1, journal.version if before is None else before - 1)
    found = list(islice(journal.walk_back(wanted, "fold"), MOST_FOLDS + 1))
    listed = found[:MOST_FOLDS]
    older = len(found) > MOST_FOLDS
    return {
        "folds": [_describe(opened, entry, fold_meta(entry.meta), gone.get(entry.seq, set())) for entry in listed],
        "older": address("api/folds", session=opened.session.id, before=listed[-1].seq) if older else None,
    }


def _describe(opened: OpenSession, entry: Entry, fold: Fold, gone: set[int]) -> dict[str, Any]:
    journal = opened.session.journal
    active = [span for number, span in enumerate(fold.spans) if number not in gone]
    inside = outer_fold(journal, entry, fold, gone) if active else ""
    state = "undone" if not active else "inside" if inside else "partly" if gone else "applies"
    told = None
    if active and not inside:
        back = sum((span.saves for span in active), Weight())
        cover = journal.view.cover(ends(active[0])[0])
        told = price(opened, back, index_of(opened, cover)) if cover is not None else None
    return {
        **describe_fold(entry, fold),
        "seq": entry.seq,
        "before": fold.before,
        "after": fold.after,
        "saved": fold.before - fold.after,
        "messages": sum(1 if isinstance(span, BlockSpan) else span.hides for span in fold.spans),
        "spans": len(fold.spans),
        "state": state,
        "inside": inside or None,
        "price": told,
    }


def fold(opened: OpenSession, id: str, start: int = 0) -> dict[str, Any]:
    """Describe one fold with its spans, the text in their place, and the beginning of what it hides."""
    journal = opened.session.journal
    entry = journal.entry(journal.find(id, "fold").seq, body=True)
    made = fold_meta(entry.meta)
    path = journal.path(journal.version)
    gone = (
        removed_spans(journal, path).get(entry.seq, set()) if on_path(path, entry.seq) else set(range(len(made.spans)))
    )
    wanted = slice(start, start + MOST_SPANS)
    parts = [
        msgspec.structs.asdict(each) | {"span": each.number, "shown": cut_text(each.shown)["text"]}
        for each in span_records(journal, entry, made, gone, wanted)
    ]
    hidden = _hidden(opened, [ends(span) for span in made.spans[wanted]], path)
    return {**_describe(opened, entry, made, gone), "parts": parts, "hidden": list(hidden)}


def _hidden(
    opened: OpenSession, places: Sequence[tuple[int, int]], path: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Describe the first messages between these entries."""
    journal, left = opened.session.journal, MOST_HIDDEN
    for first, last in places:
        for start, stop in within(path, first, last):
            for entry in journal.walk([(start, min(stop, start + 4 * left))], kinds=("message",), bodies=True):
                if left == 0:
                    return
                left -= 1
                meta = message_meta(entry.meta)
                yield {
                    "id": entry.id,
                    "seq": entry.seq,
                    "role": meta.role,
                    "tokens": journal.scale.tokens(meta.weight),
                    "text": preview(journal.decode(entry)),
                }


# Any words


def explain(opened: OpenSession, words: str) -> dict[str, Any]:
    """Find words in everything that was said, and say for each place whether the model sees it."""
    session = opened.session
    archive = Archive(session.journal.store, session.id, scope="session")
    return {"words": words, "found": [_explained(opened, each) for each in archive.retrieve(words, MOST_FOUND)]}


def _explained(opened: OpenSession, found: Found) -> dict[str, Any]:
    journal = opened.session.journal
    told = _found(found) | {"state": "left", "why": "it is on a branch that was left", "fold": None}
    told |= {"page": None, "index": None, "price": None}
    item = journal.view.cover(found.seq) if found.seq is not None and not found.abandoned else None
    if item is None:
        return told if found.seq is not None else told | {"state": "kept", "why": "it is kept in the archive only"}
    index = index_of(opened, item)
    told |= {"index": index, "page": index // PAGE}
    seq, number = (
        (item.fold, item.span) if item.fold else (item.cuts[0].fold, item.cuts[0].span) if item.cuts else (0, 0)
    )
    if not seq:
        task = item.seq == journal.view.task_seq()
        reason = "it is pinned" if item.pinned else "it is the task" if task else "no fold hides it"
        return told | {"state": "visible", "why": reason}
    entry = journal.entry(seq)
    made = fold_meta(entry.meta)
    verb = "hidden" if item.fold else "cut"
    return told | {
        "state": verb,
        "why": f"{verb} by {made.kind} {entry.id} of {made.strategy}: {made.reason}",
        "fold": entry.id,
        "price": price(opened, made.spans[number].saves, index),
    }


def _found(found: Found) -> dict[str, Any]:
    return {
        "session": found.session,
        "message": found.message_id,
        "seq": found.seq,
        "role": found.role,
        "at": found.at,
        "text": found.text,
        "lines": f"{found.lines[0]}-{found.lines[1]}" if found.lines else None,
        "left": found.abandoned,
    }


def search(sessions: OpenSessions, words: str) -> dict[str, Any]:
    """Find words in everything that was said in all sessions."""
    archive = Archive(sessions.store, "", scope="all")
    return {"words": words, "found": [_found(each) for each in archive.retrieve(words, MOST_FOUND)]}
