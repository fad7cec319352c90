"""Archives for tests: a journal with things said in it, and an embedder that knows a few words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from windowsill import Session
from windowsill.messages import Message, text_message
from windowsill.search import Archive
from windowsill.store.memory import MemoryStore

DAY = 86_400.0


def said(*texts: str | Message, store: Any = None, id: str = "s", at: float = 1_000.0, **settings: Any) -> Any:
    """A store whose session holds these texts, said by the user and the assistant in turn, a minute apart."""
    store = store if store is not None else MemoryStore()
    ticks = itertools.count()
    with Session.open(id, store=store, model="gpt-4o", clock=lambda: at + 60.0 * next(ticks), **settings) as session:
        for place, each in enumerate(texts):
            role = "assistant" if place % 2 else "user"
            session.add(text_message(role, each) if isinstance(each, str) else each)
    return store


def asked(store: Any, question: str, k: int | None = None, **options: Any) -> list[str]:
    """The texts found for a question, best first."""
    with Archive(store, options.pop("session", "s"), scope=options.pop("scope", "session")) as archive:
        return [found.text for found in archive.retrieve(question, k, **options)]


class Synonyms:
    """An embedder for which words of one group mean the same, and all else means nothing."""

    name = "synonyms"

    def __init__(self, *groups: Iterable[str]) -> None:
        self._groups = [frozenset(group) for group in groups]
        self.dimensions = len(self._groups)
        self.embedded = 0

    def embed(self, texts: Any) -> Any:
        self.embedded += len(texts)
        rows = [[len(group & set(text.lower().split())) for group in self._groups] for text in texts]
        return np.array(rows, np.float32)
