"""The index itself: passages, their words and how far each session is indexed, in one SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from windowsill.archive.found import Filters
from windowsill.archive.passages import Passage
from windowsill.archive.place import Place, explained
from windowsill.archive.words import indexed
from windowsill.store import SessionInfo
from windowsill.store.statements import statements

APART = 1 << 31
"""Numbers from here on belong to passages that have no neighbours."""

_SESSION = 32
"""Bits of a key below the session's."""


class Progress(msgspec.Struct, frozen=True):
    """A session in the index, how far it is indexed, and the last numbers given."""

    id: str
    key: int
    created: float
    seq: int
    rows: int
    apart: int
    epoch: int

    @property
    def range(self) -> tuple[int, int]:
        """The first and last key of its passages."""
        return self.key << _SESSION, (self.key << _SESSION) | 0xFFFFFFFF


def session_key(key: int) -> int:
    """The session of a passage."""
    return key >> _SESSION


def number(key: int) -> int:
    """A passage's number within its session."""
    return key & 0xFFFFFFFF


class Index:
    """Reads and writes the index; every write is one transaction."""

    def __init__(self, place: Place, *, mirrors: bool) -> None:
        self.place = place
        self._mirrors = mirrors
        """The index has a list of sessions of its own, which has to follow the store's."""
        self._sql = statements("sqlite")

    def progress(self, sessions: Iterable[SessionInfo]) -> list[Progress]:
        """How far each of these sessions is indexed; those that are gone by now are left out."""
        known = {info.id: info for info in sessions}
        found = [Progress(*row) for row in self._all("passage_sessions", _json(list(known)))]
        if self._mirrors:
            found = self._follow(known, {each.id: each for each in found})
        return [each for each in found if known[each.id].created == each.created]

    def add(self, before: Progress, seq: int, passages: Sequence[Passage]) -> Progress | None:
        """Add what the entries up to `seq` hold; `None` when somebody else did so first, or the session is gone."""
        words = [indexed(passage.text) for passage in passages]
        with self._writing() as db:
            now = self._current(db, before.id)
            if now is None or now != before:
                return None
            after = self._insert(db, now, passages, words)
            after = msgspec.structs.replace(after, seq=seq)
            self._put(db, after)
        return after

    def put(self, session: str, passages: Sequence[Passage]) -> bool:
        """Add passages that no journal holds; those stored under the same ids go. False when there is no session."""
        with self._writing() as db:
            now = self._current(db, session)
            if now is None:
                return False
            for id in dict.fromkeys(passage.id for passage in passages):
                db.execute(self._sql["delete_stored"], (id, *now.range))
            self._put(db, self._insert(db, now, passages, [indexed(passage.text) for passage in passages]))
        return True

    def drop(self, session: str, *, seq: int, stored: bool) -> None:
        """Remove a session's passages, and go on from `seq`; what was stored by hand goes only if `stored`."""
        with self._writing() as db:
            now = self._current(db, session)
            if now is None:
                return
            db.execute(self._sql["delete_passages"], (*now.range, stored))
            if stored:
                db.execute(self._sql["merge_passage_words"])
            else:
                kept = db.execute(self._sql["stored_passages"], now.range).fetchall()
                again = [(key, *_words_and_text(text, indexed(text))) for key, text in kept]
                db.executemany(self._sql["replace_passage_words"], again)
            self._put(db, msgspec.structs.replace(now, seq=seq, rows=0, epoch=now.epoch + 1))

    def remake_words(self) -> None:
        """Make the full-text index anew from the passages, whatever is left of it."""
        with self._writing() as db:
            db.execute(self._sql["remake_passage_words"])

    def keep_only(self, exists: Callable[[str], bool]) -> None:
        """Remove sessions that the store has no more, where the list of them is not the store's own."""
        gone = [key for key, id in self._all("passage_session_ids") if not exists(id)] if self._mirrors else []
        if gone:
            with self._writing() as db:
                db.executemany(self._sql["delete_session"], [(key,) for key in gone])

    def match(self, query: str, scope: Sequence[Progress], filters: Filters, most: int) -> list[tuple[int, float]]:
        """The best passages for a match expression, with their BM25 scores, best first."""
        if not query or not scope:
            return []
        keys = _json([each.key for each in scope])
        wide = (min(each.range[0] for each in scope), max(each.range[1] for each in scope))
        if filters.any:
            return self._all("match_chosen_passages", query, *wide, most, keys, *filters.parameters())
        if len(scope) == 1:
            return self._all("match_passages", query, *wide, most)
        return self._all("match_passages_of_many", query, *wide, most, keys)

    def literal(self, text: str, scope: Sequence[Progress], filters: Filters, most: int) -> list[int]:
        """The newest passages in which a text stands letter for letter; it looks at every one of them."""
        if not scope:
            return []
        keys = _json([each.key for each in scope])
        wide = (min(each.range[0] for each in scope), max(each.range[1] for each in scope))
        return [key for (key,) in self._all("literal_passages", *wide, text, keys, most, *filters.parameters())]

    def allowed(self, session: Progress, filters: Filters) -> list[int]:
        """The keys of a session's passages that the filters let through, in order."""
        return [key for (key,) in self._all("chosen_passages", *session.range, *filters.parameters())]

    def facts(self, keys: Iterable[int]) -> list[tuple[int, float, str, str | None, str | None, int | None]]:
        """Key, time, role, tool, speaker and entry of passages; those that are not there are left out."""
        return self._all("passage_facts", _json(list(keys)))

    def passages(self, keys: Iterable[int]) -> dict[int, Passage]:
        """Whole passages."""
        rows = self._all("passages", _json(list(keys)))
        return {key: Passage(*row) for key, *row in rows}

    def verbatim(self, keys: Iterable[int], text: str) -> set[int]:
        """Those of these passages in which a text stands letter for letter."""
        return {key for (key,) in self._all("verbatim_passages", _json(list(keys)), text)}

    def newest(self, session: Progress) -> float | None:
        """When the last message of a session was said."""
        first = session.range[0]
        row = self._all("newest_passage", first, first + APART - 1) or self._all("newest_passage", *session.range)
        return row[0][0] if row else None

    def without_vector(self, first: int, last: int, model: str, most: int) -> list[tuple[int, str]]:
        """Keys and texts of passages that a model has not embedded yet."""
        return self._all("passages_without_vector", first, last, model, most)

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep vectors of passages that are still there."""
        with self._writing() as db:
            db.executemany(self._sql["put_passage_vector"], [(key, model, data) for key, data in vectors])

    def vectors(self, first: int, last: int, model: str) -> list[tuple[int, bytes]]:
        """The vectors of passages between two keys."""
        return self._all("passage_vectors", first, last, model)

    def close(self) -> None:
        """Release the connections."""
        self.place.close()

    def _insert(self, db: Any, now: Progress, passages: Sequence[Passage], words: Sequence[str]) -> Progress:
        rows, apart, base = now.rows, now.apart, now.range[0]
        keys = []
        for passage in passages:
            if passage.source == "message":
                rows += 1
                keys.append(base + rows)
            else:
                apart += 1
                keys.append(base + APART + apart)
        db.executemany(self._sql["insert_passage"], map(_row, keys, passages, words))
        db.executemany(self._sql["insert_passage_words"], zip(keys, words, strict=True))
        return msgspec.structs.replace(now, rows=rows, apart=apart)

    def _current(self, db: Any, session: str) -> Progress | None:
        rows = db.execute(self._sql["passage_sessions"], (_json([session]),)).fetchall()
        return Progress(*rows[0]) if rows else None

    def _put(self, db: Any, now: Progress) -> None:
        db.execute(self._sql["put_passage_progress"], (now.key, now.seq, now.rows, now.apart, now.epoch))

    def _follow(self, known: Mapping[str, SessionInfo], found: Mapping[str, Progress]) -> list[Progress]:
        """Make the index's own list of sessions the store's, as far as it is asked for."""
        new = [info for info in known.values() if info.id not in found or found[info.id].created != info.created]
        if not new:
            return list(found.values())
        with self._writing() as db:
            for info in new:
                if info.id in found:
                    db.execute(self._sql["delete_session"], (found[info.id].key,))
                db.execute(self._sql["create_session"], (info.id, info.created, b"{}"))
        return [Progress(*row) for row in self._all("passage_sessions", _json(list(known)))]

    def _all(self, statement: str, *parameters: object) -> list[Any]:
        with explained(), self.place.reading() as db:
            return db.execute(self._sql[statement], parameters).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with explained(), self.place.writing() as db:
            yield db


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _words_and_text(text: str, words: str) -> tuple[str, str | None]:
    """As they are kept: most text is its own words, and need not be there twice."""
    return words, None if words == text else text


def _row(key: int, passage: Passage, words: str) -> tuple[object, ...]:
    return (key, *msgspec.structs.astuple(passage)[:-1], *_words_and_text(passage.text, words))
