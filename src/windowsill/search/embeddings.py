"""Embedders turn text into vectors: the protocol, and one that works offline."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from windowsill.extras import extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Vectors: TypeAlias = "NDArray[np.float32]"


class Embedder(Protocol):
    """Gives texts of similar meaning similar vectors. Another `name` means vectors that do not compare."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of float32 for each text, of any length but zero."""


class WordLlama:
    """Word vectors, averaged: thousands of texts a second, and no network. Needs the extra `embeddings`."""

    name = "wordllama-l2-supercat-256"
    dimensions = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text; the first call loads the model."""
        with self._lock:
            self._model = self._model or _load()
            found: Vectors = self._model.embed(list(texts))
        return found


def _load() -> Any:
    with extra("embeddings", "searching by meaning"):
        wordllama = import_module("wordllama")
    # Its wheel holds the weights in its own folder; elsewhere it would look for a download.
    return wordllama.WordLlama.load(cache_dir=Path(str(wordllama.__file__)).parent, disable_download=True)
