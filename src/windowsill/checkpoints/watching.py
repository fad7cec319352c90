"""What the last checkpoint of a branch saw, kept up to date at a cost that does not grow with the history.

All of it is read from the journal: a process that begins anew knows what the one before it knew.
"""

from __future__ import annotations

from windowsill.checkpoints.automatic import Seen
from windowsill.checkpoints.labels import Checkpoint, checkpoint_of, newest_first
from windowsill.history.entries import Entry, Kind
from windowsill.history.path import path_to, within
from windowsill.history.view import View, fold_meta
from windowsill.store import Store

_TELLING: tuple[Kind, ...] = ("label", "fold", "rewind")


class Watching:
    """Follows one session for the rule that says when a checkpoint is due."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._at = 0
        self._seen: Seen | None = None
        self._counted = (-1, 0, 0)

    def seen(self, version: int, tokens: int) -> Seen:
        """What the last checkpoint on the path to an entry saw; the view there has so many tokens."""
        seen = self._since(version) or self._read(version)
        self._at, self._seen = version, seen.lowered(tokens)
        return self._seen

    def messages(self, view: View) -> int:
        """How many messages the branch has, hidden ones included; those counted before are not counted again."""
        edits, length, count = self._counted
        if edits != view.edits or length > len(view.items):
            length = count = 0
        count += sum(item.hides if item.fold else 1 for item in view.items[length:])
        self._counted = (view.edits, len(view.items), count)
        return count

    def _since(self, version: int) -> Seen | None:
        """What follows from the last look and what was written since; `None` when the path is another one."""
        seen = self._seen if version >= self._at else None
        if seen is None:
            return None
        for entry in self._store.read(self._session, self._at + 1, version, kinds=_TELLING, bodies=False):
            if entry.kind == "rewind":
                return None
            seen = _after(seen, entry)
        return seen

    def _read(self, version: int) -> Seen:
        path = path_to(version, self._store.jumps(self._session))
        seen, start = self._beginning(), 0
        for entry in newest_first(self._store, self._session, path):
            found = checkpoint_of(entry)
            if found is not None:
                seen, start = _seen_at(found), entry.seq
                break
        for first, last in within(path, start + 1, version):
            for entry in self._store.read(self._session, first, last, kinds=("fold",), bodies=False):
                seen = _after(seen, entry)
        return seen

    def _beginning(self) -> Seen:
        info = self._store.info(self._session)
        return Seen(at=info.created if info is not None else 0.0)


def _seen_at(checkpoint: Checkpoint) -> Seen:
    return Seen(at=checkpoint.at, messages=checkpoint.messages, tokens=checkpoint.tokens, phase=checkpoint.phase)


def _after(seen: Seen, entry: Entry) -> Seen:
    """What holds after a label or a fold. A fold says how small it made the view: a line may be crossed again."""
    if entry.kind == "fold":
        return seen.lowered(fold_meta(entry.meta).after)
    found = checkpoint_of(entry)
    return seen if found is None else _seen_at(found)
