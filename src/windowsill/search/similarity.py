"""Find passages by the similarity of their vectors, which are made once and held as one matrix for each session.

This is the only module of the room that imports numpy, which is an extra.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windowsill.search.embeddings import Embedder
from windowsill.store import SearchIndex
from windowsill.store.search_index import APART, Filters, IndexedSession

BATCH = 1_000
"""Passages embedded and written at once."""

STORED = np.dtype("<f2")
"""Half precision: half the space, and no difference in the order of hits."""


class Similarity:
    """Finds passages by their meaning."""

    def __init__(self, index: SearchIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._matrices: dict[int, _Matrix] = {}
        self._lock = threading.Lock()

    def catch_up(self, scope: Sequence[IndexedSession]) -> None:
        """Embed what was indexed since the last time."""
        for session in scope:
            for first, last in _halves(session):
                while missing := self._index.without_vector(first, last, self._embedder.name, BATCH):
                    rows = normalize(self._embedder.embed([text for _, text in missing])).astype(STORED)
                    made = [(key, row.tobytes()) for (key, _), row in zip(missing, rows, strict=True)]
                    self._index.put_vectors(self._embedder.name, made)

    def top(self, question: str, scope: Sequence[IndexedSession], filters: Filters, most: int) -> dict[int, float]:
        """Return the passages most similar to a question, as far as they have anything in common with it."""
        wanted = normalize(self._embedder.embed([question]))[0]
        found = self._index.nearest(self._embedder.name, wanted.astype(STORED).tobytes(), scope, filters, most)
        if found is not None:
            return {key: score for key, score in found if score > 0}
        best: list[tuple[float, int]] = []
        with self._lock:
            for session in scope:
                matrix = self._loaded(session)
                keys, scores = matrix.keys, matrix.rows @ wanted
                if filters:
                    chosen = np.isin(keys, np.array(self._index.allowed(session, filters), np.int64))
                    keys, scores = keys[chosen], scores[chosen]
                if len(scores) > most:
                    top = np.argpartition(scores, -most)[-most:]
                    keys, scores = keys[top], scores[top]
                best += zip(scores.tolist(), keys.tolist(), strict=True)
        best.sort(key=lambda each: (-each[0], each[1]))
        return {key: score for score, key in best[:most] if score > 0}

    def clear(self) -> None:
        """Release the vectors held in memory; they are read again when they are needed."""
        with self._lock:
            self._matrices.clear()

    def _loaded(self, session: IndexedSession) -> _Matrix:
        stamp = (session.created, session.epoch)
        matrix = self._matrices.get(session.key)
        if matrix is None or matrix.stamp != stamp:
            # A name may be given again to a new session, and a session indexed anew: the old numbers mean nothing then.
            matrix = self._matrices[session.key] = _Matrix(self._embedder.dimensions, stamp)
        for half, (first, last) in enumerate(_halves(session)):
            end = first + (session.apart if half else session.rows)
            if matrix.last[half] < end:
                found = self._index.vectors(max(first, matrix.last[half] + 1), last, self._embedder.name)
                if found:
                    matrix.extend(found)
                    matrix.last[half] = found[-1][0]
        return matrix


class _Matrix:
    """The vectors of one session, with room to grow."""

    def __init__(self, dimensions: int, stamp: tuple[float, int]) -> None:
        self.stamp = stamp
        self.last = [0, 0]
        self.count = 0
        self._keys = np.zeros(0, np.int64)
        self._rows = np.zeros((0, dimensions), np.float32)

    @property
    def keys(self) -> NDArray[np.int64]:
        return self._keys[: self.count]

    @property
    def rows(self) -> NDArray[np.float32]:
        return self._rows[: self.count]

    def extend(self, found: Sequence[tuple[int, bytes]]) -> None:
        count = self.count + len(found)
        if count > len(self._keys):
            room = max(count, 2 * len(self._keys))
            self._keys = np.concatenate((self.keys, np.zeros(room - self.count, np.int64)))
            empty = np.zeros((room - self.count, self._rows.shape[1]), np.float32)
            self._rows = np.concatenate((self.rows, empty))
        self._keys[self.count : count] = [key for key, _ in found]
        flat = np.frombuffer(b"".join(data for _, data in found), STORED)
        self._rows[self.count : count] = flat.reshape(len(found), -1)
        self.count = count


def normalize(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length one; what has no direction stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _halves(session: IndexedSession) -> tuple[tuple[int, int], tuple[int, int]]:
    first = session.first_key
    return (first, first + APART - 1), (first + APART, session.last_key)
