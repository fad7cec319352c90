"""Search over everything ever said, in a session and across sessions: by words, by meaning, by who and when."""

from __future__ import annotations

from windowsill.search.archive import Archive, Scope
from windowsill.search.embeddings import Embedder, WordLlama
from windowsill.search.rank import Found, Ranking

__all__ = ["Archive", "Embedder", "Found", "Ranking", "Scope", "WordLlama"]
