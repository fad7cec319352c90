"""The search index that every store keeps beside its journal: passages, their words and their vectors.

The index is made from the journal and can be made again; only passages without a `seq` were stored by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

APART = 1 << 31
"""Numbers from here on belong to passages that have no neighbours: summaries, and what was stored by hand."""

LAST_ENTRY = (1 << 32) - 1
"""No entry has a greater number."""

LATEST = 1e15
"""No message has a later time, nor an earlier one than as far before the epoch."""

_SESSION_BITS = 32

Source: TypeAlias = Literal["message", "summary", "fact", "stored"]


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A piece of something said, with where it stands."""

    seq: int | None
    """The entry of the journal; `None` for what was stored by hand."""
    id: str
    role: str
    source: Source
    tool: str | None
    speaker: str | None
    at: float
    first: int
    last: int
    """The first and last line within the words, the call or the result it is from."""
    sources: str | None
    """JSON: the ids it was made from, or the first and last entry it stands for."""
    text: str


class PassageFacts(NamedTuple):
    """The part of a passage that ranking weighs beside its words."""

    at: float
    role: str
    tool: str | None
    speaker: str | None
    seq: int | None = None


class IndexedSession(msgspec.Struct, frozen=True):
    """A session in the index, how far it is indexed, and the last numbers given.

    The key of a passage is `key << 32 | number`: the passages of a session are one range of keys, and the neighbours
    of a passage are the keys around its own. `epoch` counts how often the session was begun anew.
    """

    id: str
    key: int
    created: float
    seq: int
    rows: int
    apart: int
    epoch: int

    @property
    def first_key(self) -> int:
        """The first key of its passages."""
        return self.key << _SESSION_BITS

    @property
    def last_key(self) -> int:
        """The last key its passages can have."""
        return self.first_key | 0xFFFFFFFF

    def numbered(self, passages: Sequence[Passage]) -> tuple[list[int], IndexedSession]:
        """Give passages the next keys; return these, and the session with the last numbers given."""
        rows, apart, keys = self.rows, self.apart, []
        for passage in passages:
            if passage.source == "message":
                rows += 1
                keys.append(self.first_key + rows)
            else:
                apart += 1
                keys.append(self.first_key + APART + apart)
        return keys, msgspec.structs.replace(self, rows=rows, apart=apart)


def session_key(key: int) -> int:
    """Return the session's part of a passage's key."""
    return key >> _SESSION_BITS


def passage_number(key: int) -> int:
    """Return a passage's number within its session."""
    return key & 0xFFFFFFFF


def possible_names(names: Iterable[str]) -> list[str]:
    """Leave out names that nothing has: text of PostgreSQL holds no NUL, and JSON in SQLite ends at one."""
    return [name for name in names if "\0" not in name]


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on passages that may be found; `None` means any."""

    roles: Sequence[str] | None = None
    tools: Sequence[str] | None = None
    after: float | None = None
    before: float | None = None
    within: Sequence[tuple[int, int]] | None = None
    """First and last entries of the journal, both included."""

    def __bool__(self) -> bool:
        """Tell whether the filters leave anything out."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def bounded(self) -> Filters:
        """Return filters that leave out the same, with numbers that every database can hold."""
        after, before = (
            None if at is None else float(max(min(at, LATEST), -LATEST)) for at in (self.after, self.before)
        )
        within = self.within and [(min(first, LAST_ENTRY), min(last, LAST_ENTRY)) for first, last in self.within]
        return msgspec.structs.replace(self, after=after, before=before, within=within)

    def allow(self, about: PassageFacts) -> bool:
        """Tell whether a passage may be found."""
        seq = about.seq
        return (
            (self.roles is None or about.role in self.roles)
            and (self.tools is None or about.tool in self.tools)
            and (self.after is None or about.at >= self.after)
            and (self.before is None or about.at < self.before)
            and (self.within is None or (seq is not None and any(first <= seq <= last for first, last in self.within)))
        )


class SearchIndex(Protocol):
    """Passages with their words and vectors; every call is one transaction, as in `Store`.

    A term of a query is a word, or several words in a row with blanks between them; with a `*` at its end it is the
    beginning of a word. Words are stemmed by the index, on both sides.
    """

    def sessions(self, names: Iterable[str]) -> list[IndexedSession]:
        """Return how far each of these sessions is indexed; those that the store does not have are left out."""

    def add(
        self, before: IndexedSession, seq: int, passages: Sequence[Passage], words: Sequence[str]
    ) -> IndexedSession | None:
        """Add the passages of the entries up to `seq`, with the words each is found by.

        `None`, and nothing is added, when the session is not as it was `before`: others were faster, or it is gone.
        """

    def put(self, session: str, passages: Sequence[Passage], words: Sequence[str]) -> bool:
        """Add passages that no journal holds, in the place of those stored under their ids; false without session."""

    def forget(self, session: str, seq: int) -> None:
        """Remove all passages of a session, those stored by hand too, and take it as indexed up to `seq`."""

    def restart(self, session: str, words: Callable[[str], str]) -> None:
        """Remove what was indexed from a session's journal; what was stored by hand gets its `words` anew."""

    def mend(self) -> None:
        """Make the full-text index anew from the passages, whatever is left of it."""

    def match(
        self, terms: Sequence[str], scope: Sequence[IndexedSession], filters: Filters, most: int
    ) -> list[tuple[int, float]]:
        """Find passages that hold any of the terms: the keys of the best `most` with their scores, best first."""

    def literal(self, text: str, scope: Sequence[IndexedSession], filters: Filters, most: int) -> list[int]:
        """Find the newest passages that hold a text letter for letter; this reads every passage in scope."""

    def verbatim(self, keys: Iterable[int], text: str) -> set[int]:
        """Return those of these passages that hold a text letter for letter."""

    def allowed(self, session: IndexedSession, filters: Filters) -> list[int]:
        """Return the keys of a session's passages that the filters let through, in order."""

    def facts(self, keys: Iterable[int]) -> dict[int, PassageFacts]:
        """Return what ranking weighs; keys that do not exist are left out."""

    def passages(self, keys: Iterable[int]) -> dict[int, Passage]:
        """Return whole passages; keys that do not exist are left out."""

    def newest(self, session: IndexedSession) -> float | None:
        """Return when the last message of a session was said."""

    def without_vector(self, first: int, last: int, model: str, most: int) -> list[tuple[int, str]]:
        """Return keys and texts of passages between two keys that a model has not embedded yet."""

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep vectors of passages that still exist."""

    def nearest(
        self, model: str, vector: bytes, scope: Sequence[IndexedSession], filters: Filters, most: int
    ) -> list[tuple[int, float]] | None:
        """Find the passages whose vectors have the largest products with one; `None` when the caller has to compare."""

    def vectors(self, first: int, last: int, model: str) -> list[tuple[int, bytes]]:
        """Return the vectors of passages between two keys, in order."""
