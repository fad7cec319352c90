"""The search index in PostgreSQL: `tsvector` over the words of passages."""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from windowsill.store.postgres.pool import Connection, Connections, begin, execute
from windowsill.store.search_index import (
    APART,
    Filters,
    IndexedSession,
    Passage,
    PassageFacts,
    possible_names,
)

T = TypeVar("T")

LONGEST_WORD = 400
"""Characters of a word that are indexed: PostgreSQL takes 2,046 bytes."""

_WORD = re.compile(r"[^\W_]+")
_ACCENT = re.compile("[\u0300-\u036f]")


class PostgresIndex:
    """The index in the database of a store, whose connections it shares."""

    def __init__(self, connections: Connections, sql: Mapping[str, str]) -> None:
        self._connections = connections
        self._sql = sql

    def sessions(self, names: Iterable[str]) -> list[IndexedSession]:
        """Return how far each of these sessions is indexed; those that the store does not have are left out."""
        return [IndexedSession(*row) for row in self._run("passage_sessions", sessions=possible_names(names))]

    def add(
        self, before: IndexedSession, seq: int, passages: Sequence[Passage], words: Sequence[str]
    ) -> IndexedSession | None:
        """Add the passages of the entries up to `seq`; `None` when the session is not as it was `before`."""

        def work(db: Connection, now: IndexedSession) -> IndexedSession | None:
            if now != before:
                return None
            after = msgspec.structs.replace(self._insert(db, before, passages, words), seq=seq)
            self._put(db, after)
            return after

        return self._change(before.id, work)

    def put(self, session: str, passages: Sequence[Passage], words: Sequence[str]) -> bool:
        """Add passages that no journal holds, in the place of those stored under their ids; false without session."""

        def work(db: Connection, now: IndexedSession) -> bool:
            ids = [passage.id for passage in passages]
            execute(db, self._sql["delete_stored"], {"ids": ids, **_bounds(now)})
            self._put(db, self._insert(db, now, passages, words))
            return True

        return bool(self._change(session, work))

    def forget(self, session: str, seq: int) -> None:
        """Remove all passages of a session and take it as indexed up to `seq`."""

        def work(db: Connection, now: IndexedSession) -> None:
            execute(db, self._sql["delete_passages"], {**_bounds(now), "every": True})
            self._put(db, msgspec.structs.replace(now, seq=seq, rows=0, epoch=now.epoch + 1))

        self._change(session, work)

    def restart(self, session: str, words: Callable[[str], str]) -> None:
        """Remove what was indexed from a session's journal; what was stored by hand gets its `words` anew."""

        def work(db: Connection, now: IndexedSession) -> None:
            execute(db, self._sql["delete_passages"], {**_bounds(now), "every": False})
            stored = execute(db, self._sql["stored_passages"], _bounds(now))
            again = [split_words(words(text.decode())) for _, text in stored]
            execute(db, self._sql["replace_passage_words"], {"keys": [key for key, _ in stored], "words": again})
            self._put(db, msgspec.structs.replace(now, seq=0, rows=0, epoch=now.epoch + 1))

        self._change(session, work)

    def mend(self) -> None:
        """Make the full-text index anew from the passages, whatever is left of it."""
        self._run("remake_passage_words")

    def match(
        self, terms: Sequence[str], scope: Sequence[IndexedSession], filters: Filters, most: int
    ) -> list[tuple[int, float]]:
        """Find passages that hold any of the terms, with scores in the manner of BM25, best first."""
        queries = [query for term in terms if (query := match_query(term))]
        if not queries or not scope:
            return []
        total = sum(each.rows + each.apart for each in scope)
        return self._run(
            "match_passages", terms=queries, total=total, most=most, **_scope(scope), **_parameters(filters)
        )

    def literal(self, text: str, scope: Sequence[IndexedSession], filters: Filters, most: int) -> list[int]:
        """Find the newest passages that hold a text letter for letter."""
        if not scope:
            return []
        return self._chosen(scope, filters, text.encode(), most)

    def verbatim(self, keys: Iterable[int], text: str) -> set[int]:
        """Return those of these passages that hold a text letter for letter."""
        return {key for (key,) in self._run("verbatim_passages", keys=list(keys), text=text.encode())}

    def allowed(self, session: IndexedSession, filters: Filters) -> list[int]:
        """Return the keys of a session's passages that the filters let through, in order."""
        return self._chosen([session], filters, None, None)[::-1]

    def facts(self, keys: Iterable[int]) -> dict[int, PassageFacts]:
        """Return what ranking weighs; keys that do not exist are left out."""
        rows = self._run("passage_facts", keys=list(keys))
        return {
            key: PassageFacts(at, role, _text(tool), _text(speaker), seq) for key, at, role, tool, speaker, seq in rows
        }

    def passages(self, keys: Iterable[int]) -> dict[int, Passage]:
        """Return whole passages; keys that do not exist are left out."""
        return {
            key: Passage(seq, id, role, source, _text(tool), _text(speaker), at, first, last, sources, text.decode())
            for key, seq, id, role, source, tool, speaker, at, first, last, sources, text in self._run(
                "passages", keys=list(keys)
            )
        }

    def newest(self, session: IndexedSession) -> float | None:
        """Return when the last message of a session was said."""
        first = session.first_key
        rows = self._run("newest_passage", first=first, last=first + APART - 1)
        rows = rows or self._run("newest_passage", first=first, last=session.last_key)
        return rows[0][0] if rows else None

    def without_vector(self, first: int, last: int, model: str, most: int) -> list[tuple[int, str]]:
        """Return keys and texts of passages between two keys that a model has not embedded yet."""
        rows = self._run("passages_without_vector", first=first, last=last, model=model, most=most)
        return [(key, text.decode()) for key, text in rows]

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep vectors of passages that still exist."""
        rows = list(vectors)
        kept = {"model": model, "keys": [key for key, _ in rows], "vectors": [data for _, data in rows]}
        if schema := self._vector_schema():
            embeddings = [_numbers(data) for _, data in rows]
            self._run("put_passage_embeddings", schema, **kept, embeddings=embeddings)
        else:
            self._run("put_passage_vectors", **kept)

    def nearest(
        self, model: str, vector: bytes, scope: Sequence[IndexedSession], filters: Filters, most: int
    ) -> list[tuple[int, float]] | None:
        """Find the passages whose vectors have the largest products with one, where the database has pgvector."""
        schema = self._vector_schema()
        if schema is None:
            return None
        if not scope:
            return []
        asked = {"model": model, "vector": _numbers(vector), "most": most}
        return self._run("nearest_passages", schema, **asked, **_scope(scope), **_parameters(filters))

    def _vector_schema(self) -> str | None:
        rows = self._run("vector_schema")
        return rows[0][0] if rows else None

    def vectors(self, first: int, last: int, model: str) -> list[tuple[int, bytes]]:
        """Return the vectors of passages between two keys, in order."""
        return self._run("passage_vectors", first=first, last=last, model=model)

    def _change(self, session: str, work: Callable[[Connection, IndexedSession], T]) -> T | None:
        """Work on the passages of a session while nobody else does; `None` when there is no such session."""

        def change(db: Connection) -> T | None:
            with begin(db):
                if not execute(db, self._sql["hold_passage_session"], {"session": session}):
                    return None
                (row,) = execute(db, self._sql["passage_sessions"], {"sessions": [session]})
                return work(db, IndexedSession(*row))

        return self._connections.again(change)

    def _insert(
        self, db: Connection, now: IndexedSession, passages: Sequence[Passage], words: Sequence[str]
    ) -> IndexedSession:
        keys, after = now.numbered(passages)
        parameters = {
            "keys": keys,
            "seqs": [each.seq for each in passages],
            "ids": [each.id for each in passages],
            "roles": [each.role for each in passages],
            "sources": [each.source for each in passages],
            "tools": [_bytes(each.tool) for each in passages],
            "speakers": [_bytes(each.speaker) for each in passages],
            "times": [each.at for each in passages],
            "firsts": [each.first for each in passages],
            "lasts": [each.last for each in passages],
            "made_from": [each.sources for each in passages],
            "texts": [each.text.encode() for each in passages],
            "words": [split_words(each) for each in words],
        }
        execute(db, self._sql["insert_passages"], parameters)
        return after

    def _put(self, db: Connection, now: IndexedSession) -> None:
        numbers = {"key": now.key, "seq": now.seq, "rows": now.rows, "apart": now.apart, "epoch": now.epoch}
        execute(db, self._sql["put_passage_progress"], numbers)

    def _chosen(
        self, scope: Sequence[IndexedSession], filters: Filters, text: bytes | None, most: int | None
    ) -> list[int]:
        rows = self._run("chosen_passages", text=text, most=most, **_scope(scope), **_parameters(filters))
        return [key for (key,) in rows]

    def _run(self, statement: str, vector_schema: str = "", /, **parameters: object) -> list[Any]:
        # The place of pgvector is not in the search path for certain.
        text = self._sql[statement].replace("pgvector.", f'"{vector_schema}".')
        return self._connections.run(text, parameters)


def split_words(text: str) -> str:
    """Return the words of a text with blanks between them, lower-case and without accents."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))
    return " ".join(word[:LONGEST_WORD] for word in _WORD.findall(text.lower()))


def match_query(term: str) -> str:
    """Write a term in the language of `to_tsquery`; quoted, no term can be read as an operator."""
    words = [f"'{word}'" for word in split_words(term.removesuffix("*")).split()]
    return " <-> ".join(words) + (":*" if words and term.endswith("*") else "")


def _scope(scope: Sequence[IndexedSession]) -> dict[str, object]:
    first, last = min(each.first_key for each in scope), max(each.last_key for each in scope)
    return {"first": first, "last": last, "keys": [each.key for each in scope]}


def _bounds(session: IndexedSession) -> dict[str, object]:
    return {"first": session.first_key, "last": session.last_key}


def _parameters(filters: Filters) -> dict[str, object]:
    filters = filters.bounded()
    within = filters.within
    return {
        "roles": None if filters.roles is None else possible_names(filters.roles),
        "tools": None if filters.tools is None else [tool.encode() for tool in filters.tools],
        "after": filters.after,
        "before": filters.before,
        "range_firsts": None if within is None else [first for first, _ in within],
        "range_lasts": None if within is None else [last for _, last in within],
    }


def _numbers(vector: bytes) -> str:
    """Write a vector of numbers in half precision as pgvector reads it."""
    return "[" + ",".join(map(repr, struct.unpack(f"<{len(vector) // 2}e", vector))) + "]"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
