"""The search index in SQLite: FTS5 over the words of passages, in the store's own file or in memory."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from windowsill.errors import DamagedError
from windowsill.store.search_index import (
    APART,
    Filters,
    IndexedSession,
    Passage,
    PassageFacts,
    possible_names,
)
from windowsill.store.sqlite.connections import translated
from windowsill.store.sqlite.migrate import split
from windowsill.store.statements import migrations, statements


class _Database(Protocol):
    def reading(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]: ...


class SQLiteIndex:
    """The index in a database that has the store's schema; it shares the connections of its store."""

    def __init__(self, database: _Database) -> None:
        self._database = database
        self._sql = statements("sqlite")

    def sessions(self, names: Iterable[str]) -> list[IndexedSession]:
        """Return how far each of these sessions is indexed; those that the store does not have are left out."""
        return [IndexedSession(*row) for row in self._all("passage_sessions", _json(possible_names(names)))]

    def add(
        self, before: IndexedSession, seq: int, passages: Sequence[Passage], words: Sequence[str]
    ) -> IndexedSession | None:
        """Add the passages of the entries up to `seq`; `None` when the session is not as it was `before`."""
        with self._writing() as db:
            if self._session(db, before.id) != before:
                return None
            after = msgspec.structs.replace(self._insert(db, before, passages, words), seq=seq)
            self._put(db, after)
        return after

    def put(self, session: str, passages: Sequence[Passage], words: Sequence[str]) -> bool:
        """Add passages that no journal holds, in the place of those stored under their ids; false without session."""
        with self._writing() as db:
            now = self._session(db, session)
            if now is None:
                return False
            for id in dict.fromkeys(passage.id for passage in passages):
                db.execute(self._sql["delete_stored"], (id, now.first_key, now.last_key))
            self._put(db, self._insert(db, now, passages, words))
        return True

    def forget(self, session: str, seq: int) -> None:
        """Remove all passages of a session and take it as indexed up to `seq`."""
        with self._writing() as db:
            if now := self._session(db, session):
                db.execute(self._sql["delete_passages"], (now.first_key, now.last_key, True))
                db.execute(self._sql["merge_passage_words"])
                self._put(db, msgspec.structs.replace(now, seq=seq, rows=0, epoch=now.epoch + 1))

    def restart(self, session: str, words: Callable[[str], str]) -> None:
        """Remove what was indexed from a session's journal; what was stored by hand gets its `words` anew."""
        with self._writing() as db:
            if now := self._session(db, session):
                db.execute(self._sql["delete_passages"], (now.first_key, now.last_key, False))
                stored = db.execute(self._sql["stored_passages"], (now.first_key, now.last_key)).fetchall()
                again = [(key, *_words_and_text(text, words(text))) for key, text in stored]
                db.executemany(self._sql["replace_passage_words"], again)
                self._put(db, msgspec.structs.replace(now, seq=0, rows=0, epoch=now.epoch + 1))

    def mend(self) -> None:
        """Make the full-text index anew from the passages, whatever is left of it."""
        with self._writing() as db:
            db.execute(self._sql["remake_passage_words"])

    def match(
        self, terms: Sequence[str], scope: Sequence[IndexedSession], filters: Filters, most: int
    ) -> list[tuple[int, float]]:
        """Find passages that hold any of the terms, with their BM25 scores, best first."""
        if not terms or not scope:
            return []
        query, keys, wide = match_expression(terms), _json([each.key for each in scope]), _range(scope)
        if filters:
            return self._all("match_chosen_passages", query, *wide, most, keys, *_parameters(filters))
        if len(scope) == 1:
            return self._all("match_passages", query, *wide, most)
        return self._all("match_passages_of_many", query, *wide, most, keys)

    def literal(self, text: str, scope: Sequence[IndexedSession], filters: Filters, most: int) -> list[int]:
        """Find the newest passages that hold a text letter for letter."""
        if not scope:
            return []
        keys = _json([each.key for each in scope])
        parameters = (*_range(scope), text, keys, most, *_parameters(filters))
        return [key for (key,) in self._all("literal_passages", *parameters)]

    def verbatim(self, keys: Iterable[int], text: str) -> set[int]:
        """Return those of these passages that hold a text letter for letter."""
        return {key for (key,) in self._all("verbatim_passages", _json(list(keys)), text)}

    def allowed(self, session: IndexedSession, filters: Filters) -> list[int]:
        """Return the keys of a session's passages that the filters let through, in order."""
        rows = self._all("chosen_passages", session.first_key, session.last_key, *_parameters(filters))
        return [key for (key,) in rows]

    def facts(self, keys: Iterable[int]) -> dict[int, PassageFacts]:
        """Return what ranking weighs; keys that do not exist are left out."""
        return {row[0]: PassageFacts._make(row[1:]) for row in self._all("passage_facts", _json(list(keys)))}

    def passages(self, keys: Iterable[int]) -> dict[int, Passage]:
        """Return whole passages; keys that do not exist are left out."""
        return {key: Passage(*row) for key, *row in self._all("passages", _json(list(keys)))}

    def newest(self, session: IndexedSession) -> float | None:
        """Return when the last message of a session was said."""
        first = session.first_key
        rows = self._all("newest_passage", first, first + APART - 1)
        rows = rows or self._all("newest_passage", first, session.last_key)
        return rows[0][0] if rows else None

    def without_vector(self, first: int, last: int, model: str, most: int) -> list[tuple[int, str]]:
        """Return keys and texts of passages between two keys that a model has not embedded yet."""
        return self._all("passages_without_vector", first, last, model, most)

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep vectors of passages that still exist."""
        with self._writing() as db:
            db.executemany(self._sql["put_passage_vector"], [(key, model, data) for key, data in vectors])

    def nearest(self, *_: object, **__: object) -> None:
        """Leave it to the caller: reading the vectors from a file on this machine costs next to nothing."""

    def vectors(self, first: int, last: int, model: str) -> list[tuple[int, bytes]]:
        """Return the vectors of passages between two keys, in order."""
        return self._all("passage_vectors", first, last, model)

    def _insert(
        self, db: sqlite3.Connection, now: IndexedSession, passages: Sequence[Passage], words: Sequence[str]
    ) -> IndexedSession:
        keys, after = now.numbered(passages)
        db.executemany(self._sql["insert_passage"], map(_row, keys, passages, words))
        db.executemany(self._sql["insert_passage_words"], zip(keys, words, strict=True))
        return after

    def _session(self, db: sqlite3.Connection, name: str) -> IndexedSession | None:
        row = db.execute(self._sql["passage_sessions"], (_json([name]),)).fetchone()
        return IndexedSession(*row) if row else None

    def _put(self, db: sqlite3.Connection, now: IndexedSession) -> None:
        db.execute(self._sql["put_passage_progress"], (now.key, now.seq, now.rows, now.apart, now.epoch))

    def _all(self, statement: str, *parameters: object) -> list[Any]:
        with _explained(), self._database.reading() as db:
            return db.execute(self._sql[statement], parameters).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with _explained(), self._database.writing() as db:
            yield db


class MemoryIndex(SQLiteIndex):
    """An index that is gone with its process, for a store whose sessions are in memory."""

    def __init__(self) -> None:
        super().__init__(_MemoryDatabase())

    def create_session(self, name: str, created: float) -> None:
        """Take a session into the index's own list."""
        with self._writing() as db:
            db.execute(self._sql["create_session"], (name, created, b"{}", None))

    def delete_session(self, name: str) -> None:
        """Remove a session with its passages."""
        with self._writing() as db:
            if row := db.execute(self._sql["session_key"], (name,)).fetchone():
                db.execute(self._sql["delete_session"], row)


class _MemoryDatabase:
    """One connection to a database in memory, for one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._db.close)
        self._db.execute("PRAGMA foreign_keys = ON")
        for step in migrations("sqlite"):
            for statement in split(step.script):
                self._db.execute(statement)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, translated(Path(":memory:")):
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self.reading() as db:
            db.execute("BEGIN")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise


def match_expression(terms: Iterable[str]) -> str:
    """Write terms in FTS5's query language; quoted, no term can be read as an operator."""
    return " OR ".join(f'"{term[:-1]}" *' if term.endswith("*") else f'"{term}"' for term in terms)


@contextmanager
def _explained() -> Iterator[None]:
    """Name the remedy for a damaged index: SQLite does not tell it from damage of the journal beside it."""
    try:
        yield
    except DamagedError as error:
        if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        raise DamagedError(
            f"the search index is damaged ({error.__cause__})",
            remedy="`archive.rebuild()` makes it again from the journal; if that fails too, put a backup of the store "
            "in its place",
        ) from error.__cause__


def _range(scope: Sequence[IndexedSession]) -> tuple[int, int]:
    return min(each.first_key for each in scope), max(each.last_key for each in scope)


def _parameters(filters: Filters) -> tuple[str | float | None, ...]:
    filters = filters.bounded()
    roles, tools, ranges = (
        None if values is None else _json(list(values)) for values in (filters.roles, filters.tools, filters.within)
    )
    return roles, tools, filters.after, filters.before, ranges


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _words_and_text(text: str, words: str) -> tuple[str, str | None]:
    """Return words and text as they are kept: most text is its own words, and need not be there twice."""
    return words, None if words == text else text


def _row(key: int, passage: Passage, words: str) -> tuple[object, ...]:
    return (key, *msgspec.structs.astuple(passage)[:-1], *_words_and_text(passage.text, words))
